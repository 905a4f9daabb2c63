"""An optimizer that passes through any chain of carriers is migrated whole and trains equal, or is refused whole, with a word.

OPTIM2OPTAX_PROGRAMS is how many are tried; `python -m benchmarks.flows` tries them by the thousand, and counts.
"""

import os
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings

from codemods import Source, migrate
from tests.generated.flows import ALL, FOLLOWED, flow, flows
from tests.generated.verdicts import KEPT, Kind, is_said, verdict
from tests.generated.writing import Flow

MANY = int(os.environ.get("OPTIM2OPTAX_PROGRAMS", "60"))
LOUD: Kind = "half migrated"


def assert_kept(generated: Flow, *besides: Kind) -> None:
    """A program is migrated and equal, refused with a word, or ends in an error as told."""
    found = verdict(generated.files)
    told = f"{found.kind}: {found.why} ({', '.join(generated.carriers)})"
    assert found.kind in (*KEPT, *besides), told
    assert found.said or found.kind in ("equal", *besides)


@pytest.mark.parametrize("carrier", ALL)
def test_one_carrier_is_followed_or_told(carrier: str) -> None:
    files = flow(Random(0), [carrier], plain=True).files
    results = migrate([Source(path, text.encode()) for path, text in files.items()])
    assert is_said(results) == (carrier not in FOLLOWED)


@pytest.mark.usefixtures("legacy_wheel")
@pytest.mark.parametrize("carrier", Random(0).sample([*ALL], min(MANY, len(ALL))))
def test_one_carrier_before_a_read_of_the_target(carrier: str) -> None:
    assert_kept(flow(Random(0), [carrier], plain=True))


@pytest.mark.usefixtures("legacy_wheel")
@settings(
    max_examples=MANY // 2,
    deadline=None,
    derandomize="OPTIM2OPTAX_PROGRAMS" not in os.environ,
    suppress_health_check=[*HealthCheck],
)
@given(generated=flows())
def test_any_chain_of_carriers(generated: Flow) -> None:
    """Where several meet, an error may come untold: `benchmarks/flows.py` counts how many do."""
    assert_kept(generated, LOUD)
