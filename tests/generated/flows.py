"""Legacy programs at random in which an object passes through a chain of carriers between its creation and its use.

A carrier is a piece of ordinary Python, or a function of a package that nobody can read: it reads `<x!>` and binds `<y!>`, which
then is the object that `<x!>` is; `<n!>` is a number of its own, for the names that it makes. The object is an optimizer, or a
definition that becomes one at the end of the chain. Beside it there may be decoys, which have what a legacy optimizer has and are
something else; what is done with them is put into `notes`.
"""

from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

from hypothesis import strategies as st

from codemods.vocabulary import words
from tests.generated.writing import Flow, Writer, grammar

HERE = Path(__file__).parent
PATHS = sorted((HERE / "carriers").glob("*.txt"))
CARRIERS = {path.stem: grammar(path) for path in PATHS}
TOLD = " (told)"
"""So ends the name of a carrier that is not followed, in its file."""

FAMILIES = {
    family: {name.removesuffix(TOLD): text for name, text in named.items()}
    for family, named in CARRIERS.items()
}
ALL = {
    f"{family}: {name}": text
    for family, named in FAMILIES.items()
    for name, text in named.items()
}
FOLLOWED = ALL.keys() & {
    f"{family}: {name}" for family, named in CARRIERS.items() for name in named
}
DECOYS = grammar(HERE / "decoys.txt")
GRAMMAR = grammar(HERE / "flows.txt") | ALL | DECOYS
NAMES = words("x item thing opt obj optimizer value state it model")

PLACES = ("", "", "of a function", "of a method", "of a file")
"""Where a carrier may be; empty for where the program is."""


class First(Random):
    """Draws the first of all, and nothing that is rare."""

    def choice(self, seq: Any) -> Any:
        return seq[0]

    def sample(self, population: Any, k: int, *, counts: Any = None) -> Any:
        return population[:k]

    def randrange(self, *_: Any) -> int:
        return 1


def flow(
    random: Random, carriers: Sequence[str] | None = None, plain: bool = False
) -> Flow:
    """A program whose object passes through these carriers, or through some that are drawn.

    Args:
        random: draws.
        carriers: their names; None draws one to four.
        plain: nothing varies but the carriers, and all that is done behind them is a read of the target.
    """
    if carriers is None:
        families = random.choices([*FAMILIES], k=random.randint(1, 4))
        carriers = [f"{one}: {random.choice([*FAMILIES[one]])}" for one in families]
    return _Flow(First() if plain else random).flow(carriers)


def flows() -> st.SearchStrategy[Flow]:
    """Such programs, for tests of properties."""
    return st.randoms(use_true_random=False).map(flow)


class _Flow(Writer):
    """Writes one program."""

    def __init__(self, random: Random) -> None:
        super().__init__(random, GRAMMAR)
        self.names = random.sample(NAMES, len(NAMES))

    def chance(self, one_in: int) -> bool:
        """Whether what is rare is to be."""
        return self.random.randrange(one_in) == 0

    def flow(self, carriers: Sequence[str]) -> Flow:
        """A program with these carriers."""
        first, last = self.names[0], self.names[len(carriers)]
        form = self.random.choice(("after", "before", "each"))
        if self.chance(6) and not any(one.startswith("arrays") for one in carriers):
            form = "of a definition"
        self.drawn["imports"] = self.of("imports")
        hops = [self.hop(number, one) for number, one in enumerate(carriers, 1)]
        if self.chance(4):
            hops.append(self.of("another"))
        for decoy in self.random.sample([*DECOYS], self.random.choice((0, 0, 1, 2))):
            hops.insert(self.random.randint(0, len(hops)), self.of(decoy))
        self.drawn |= {"first": first, "last": last, "hops": "\n".join(hops)}
        self.drawn["stepped"] = first if form == "after" else last
        return Flow(self.program(form), tuple(carriers))

    def hop(self, number: int, carrier: str) -> str:
        """The statements that take an object from one name to the next."""
        n, x, y = str(number), self.names[number - 1], self.names[number]
        place = self.random.choice(PLACES)
        if not place:
            return self.of(carrier, x=x, y=y, n=n)
        writer = _Flow(self.random) if place == "of a file" else self
        carried = writer.of(carrier, x="given", y="taken", n=n)
        if writer is not self:
            writer.of("of a function", carried=carried)
            self.files |= {**writer.files, f"part{n}.py": writer.file("")}
        call = self.of(place, carried=carried, n=n)
        passed = "passed"
        if self.chance(8) and not carrier.startswith("arrays"):
            self.of("an own class")
            passed = "passed beside something else"
        return self.of(passed, call=call, x=x, y=y)
