"""Legacy programs at random whose numbers depend on what values are when they run: rates, steps, classes, annotations.

Each text file is a family. A program is one of the alternatives of its `main`.
"""

from pathlib import Path
from random import Random

from tests.generated.writing import Flow, Writer, grammar

HERE = Path(__file__).parent
COMMON = grammar(HERE / "common.txt")
FAMILIES = {
    path.stem: COMMON | grammar(path)
    for path in sorted(HERE.glob("*.txt"))
    if path.stem != "common"
}


def values(random: Random, family: str = "") -> Flow:
    """A program of a family, or of one that is drawn."""
    family = family or random.choice([*FAMILIES])
    writer = Writer(random, FAMILIES[family])
    files = writer.program("main")
    return Flow(
        files, tuple(f"{family}: {one}" for one in dict.fromkeys(writer.chosen))
    )
