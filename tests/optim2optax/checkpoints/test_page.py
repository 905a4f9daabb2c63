"""The table in docs/checkpoints.md. As a script, this writes it anew."""

import re
from pathlib import Path

from tests.codemods.optimizers.published import published

PAGE = Path(__file__).resolve().parents[3] / "docs" / "checkpoints.md"
PLACE = re.compile(r"(?<=<!-- optimizers -->\n).*?(?=\nWith LARS)", re.DOTALL)


def with_table(page: str) -> str:
    """The page with what becomes of each optimizer's state."""
    rows = "".join(
        f"| `{name}` | {', '.join(f'`{old}` → `{new}`' for old, new in found.state.items()) or 'nothing'} |\n"
        for name, found in published().items()
        if name != "MultiOptimizer"
    )
    return PLACE.sub(
        f"\n| legacy | what it keeps for a parameter, and what optax calls it |\n|---|---|\n{rows}",
        page,
    )


def test_the_table_is_up_to_date() -> None:
    assert PAGE.read_text() == with_table(PAGE.read_text())


if __name__ == "__main__":
    PAGE.write_text(with_table(PAGE.read_text()))
