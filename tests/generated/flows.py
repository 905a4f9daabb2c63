"""Legacy programs at random in which an object passes through a chain of carriers between its creation and its use.

A carrier is a piece of ordinary Python, or a function of a package that nobody can read. The object is an optimizer, or a
definition that becomes one at the end of the chain. Beside it there may be objects that look like it and are something else.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from string import Template
from textwrap import indent

from hypothesis import strategies as st

from codemods.vocabulary import words
from tests.generated.pieces import CARRIERS, DECOYS, Piece

ALL = {
    f"{family}: {name}": piece
    for family, named in CARRIERS.items()
    for name, piece in named.items()
}
NAMES = words("x item thing opt obj optimizer value state it model")

IMPORTS = {
    "from flax import optim": "optim.",
    "import flax": "flax.optim.",
    "import flax.optim": "flax.optim.",
    "import flax.optim as fo": "fo.",
    "from flax.optim import Adam, GradientDescent, Momentum": "",
}
DEFINITIONS = (
    "GradientDescent(0.1)", "GradientDescent(learning_rate=RATE)", "Momentum(0.05)", "Momentum(RATE, beta=BETA)",
    "Adam(0.02)", "Adam(learning_rate=RATE, beta1=BETA)",
)  # fmt: skip

LIBRARIES = {
    "jax.": "import jax\n",
    "jnp.": "import jax.numpy as jnp\n",
    "np.": "import numpy as np\n",
}
"""What is imported where it is used."""

CONSTANTS = """
RATE, BETA = 0.05, 0.7
"""
SHARED = {
    "slope": """

def slope(params, batch):
    return {'w': params['w'] * batch + 0.1, 'b': params['b'] - batch}
""",
    "loss_fn": """

def loss_fn(params, batch):
    return jnp.sum(params['w'] ** 2) * batch + jnp.sum(jnp.sin(params['b']))
""",
    "rate_at": """

def rate_at(step):
    return 0.1 / (1.0 + step)
""",
}
"""Functions, each where it is used."""

STEPS = (
    "$y = $y.apply_gradient(slope($y.target, batch))",
    "$y = $y.apply_gradient(slope($y.target, batch), learning_rate=0.02)",
    "$y = $y.apply_gradient(slope($y.target, batch), learning_rate=rate_at($y.state.step))",
    "_, g = $y.compute_gradient(lambda p: loss_fn(p, batch))\n$y = $y.apply_gradient(g)",
    "$y = advance($y, batch)",
    "step = $y.apply_gradient\n$y = step(slope($y.target, batch))",
    "params = $y.target\n$y = $y.apply_gradient(slope(params, batch))",
    "$y = report.stepped($y, batch)",
    "$y, *_ = $y.optimize(lambda p: loss_fn(p, batch))",
)
ADVANCE = (
    """

def advance(one, batch):
    return one.apply_gradient(slope(one.target, batch))
""",
    """

def advance(one, batch):
    g = slope(one.target, batch)
    one = one.apply_gradient(g, learning_rate=RATE)
    return one
""",
)
READS = (
    "notes.append(f'step {$y.state.step}')",
    "notes.append(int($y.state.step))",
    "notes.append([leaf.shape for leaf in jax.tree_util.tree_leaves($y.target)])",
    "notes.append(sorted($y.target))",
    "$y = $y.replace(target=jax.tree_util.tree_map(lambda p: 0.9 * p, $y.target))",
    "notes.extend(len(one.target) for one in [$y])",
    "notes.append({name: leaf.shape for name, leaf in $y.target.items()})",
    "notes.append(np.size(getattr($y, 'target')['b']))",
    "notes.append(round(float($y.optimizer_def.hyper_params.learning_rate), 6))",
    "notes.append($y.target['w'].shape[0])",
    "if $y.state.step > 1:\n    notes.append('late')",
    "w, b = $y.target['w'], $y.target['b']",
    "notes.append(report.names($y))",
    "notes.append(report.told([$y, $y]))",
    "notes.append((lambda: $y.target['b'].size)())",
    "held = {'best': $y}\nnotes.append(held['best'].target['w'].ndim)",
)
REPORT = """

def names(thing):
    return sorted(thing.target)


def told(things):
    return ', '.join(f'{int(one.state.step)}' for one in things)


def stepped(thing, batch):
    return thing.apply_gradient(slope(thing.target, batch))
"""
"""What a file of its own does with what it is handed."""

SELDOM = (
    "notes.append(len(jax.tree_util.tree_leaves($y.state.param_states)))",
    "$y = $y.replace(state=$y.state.replace(step=$y.state.step + 2))",
    "notes.append(sorted(vars($y.optimizer_def.hyper_params)))",
    "notes.append(type($y.optimizer_def).__name__)",
    "$y = $y.apply_gradient(slope($y.target, 0.1), **{'learning_rate': 0.01})",
    "rated = $y.optimizer_def.update_hyper_params(learning_rate=0.25)\nnotes.append(float(rated.learning_rate))",
    (
        "bare, _ = $y.optimizer_def.apply_gradient($y.optimizer_def.hyper_params, $y.target, $y.state, slope($y.target, 0.2))\n"
        "found.append(bare)"
    ),
)
"""What optax has no counterpart of: the definitions keep their interface."""


@dataclass(frozen=True)
class Flow:
    """A program, and the carriers in it."""

    files: dict[str, str]
    carriers: tuple[str, ...]


@dataclass
class _Text:
    """The lines of a module and of its main function."""

    imports: list[str] = field(default_factory=list)
    head: list[str] = field(default_factory=list)
    body: list[str] = field(default_factory=list)

    def use(self, piece: Piece) -> str:
        """Put in what a piece needs at the module's level; what is left for a function."""
        self.imports += piece.imports
        if piece.module and f"\n\n{piece.module}\n" not in self.head:
            self.head.append(f"\n\n{piece.module}\n")
        return piece.body

    def write(self, depth: int, text: str) -> None:
        """Put lines into the main function."""
        self.body += [f"{'    ' * depth}{line}\n" for line in text.splitlines()]

    def module(self) -> str:
        """All that is here, and the imports and functions that it needs."""
        code = "".join((*self.head, "\n\n", *self.body))
        shared = "".join(
            function for name, function in SHARED.items() if f"{name}(" in code
        )
        used = set(re.findall(r"(?<![\w.])\w+\.", shared + code))
        libraries = [line for word, line in LIBRARIES.items() if word in used]
        return "".join(
            (*dict.fromkeys([*libraries, *self.imports]), CONSTANTS, shared, code)
        )


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
        families = random.choices([*CARRIERS], k=random.randint(1, 4))
        carriers = [
            f"{family}: {random.choice([*CARRIERS[family]])}" for family in families
        ]
    return _Writer(random, plain).program(carriers)


def flows() -> st.SearchStrategy[Flow]:
    """Such programs, for tests of properties."""
    return st.randoms(use_true_random=False).map(flow)


class _Writer:
    """Writes one program."""

    def __init__(self, random: Random, plain: bool) -> None:
        self.random, self.plain = random, plain
        self.main = _Text()
        self.files: dict[str, str] = {}
        statement = self.choose([*IMPORTS])
        self.main.imports.append(f"{statement}\n")
        self.prefix = IMPORTS[statement]

    def choose(self, values: Sequence[str]) -> str:
        """One of some values, the first in a plain program."""
        return values[0] if self.plain else self.random.choice(values)

    def chance(self, one_in: int) -> bool:
        """Whether what is rare is to be."""
        return not self.plain and self.random.randrange(one_in) == 0

    def program(self, carriers: Sequence[str]) -> Flow:
        is_tree = any(carrier.startswith("arrays") for carrier in carriers)
        is_definition = not is_tree and self.chance(6)
        when = (
            "before"
            if is_definition
            else "after"
            if self.plain
            else self.choose(("before", "each", "after"))
        )
        names = [*NAMES] if self.plain else self.random.sample(NAMES, len(NAMES))
        first, last = names[0], names[len(carriers)]
        self.main.write(0, "def run(params, batches):\n    found, notes = [], []")
        self._create(first, is_definition)
        hops = [
            self._hop(one, names[at], names[at + 1], at + 1)
            for at, one in enumerate(carriers)
        ]
        if is_definition:
            hops.append(
                f"{last} = {last}.create({self.choose(('params', 'target=params'))})"
            )
        self._beside(hops)
        self._train(when, first, last, "\n".join(hops))
        if any("advance(" in line for line in self.main.body):
            self.main.head.append(self.choose(ADVANCE))
        if any("report." in line for line in self.main.body):
            self.main.imports.append("import report\n")
            self.files["report.py"] = _Text(head=[REPORT]).module()
        return Flow({**self.files, "train.py": self.main.module()}, tuple(carriers))

    def _create(self, name: str, is_definition: bool) -> None:
        definition = self.prefix + self.choose(DEFINITIONS)
        form = self.choose(("at once", "by a function", "by a definition"))
        if is_definition:
            self.main.write(1, f"{name} = {definition}")
        elif form == "at once":
            self.main.write(1, f"{name} = {definition}.create(params)")
        elif form == "by a function":
            self.main.head.append(
                f"\n\ndef create(params):\n    return {definition}.create(params)\n"
            )
            self.main.write(1, f"{name} = create(params)")
        else:
            self.main.write(
                1,
                f"definition = {definition}\n{name} = definition.create(target=params)",
            )

    def _hop(self, carrier: str, x: str, y: str, number: int) -> str:
        """The statements that take an object from one name to another, in the main function."""
        place = self.choose(("inline", "inline", "function", "method", "file"))
        if place == "inline":
            return self.main.use(ALL[carrier](x=x, y=y, n=number))
        call = (
            self._hop_in_a_file(carrier, number)
            if place == "file"
            else self._hop_in_a_function(carrier, number, place)
        )
        if carrier.startswith("arrays") or not self.chance(8):
            return f"{y} = {call}({x})"
        self.main.use(DECOYS["an own class"]())
        other = f"also{number} = {call}(Lens.create(2.0))\nnotes.append(also{number}.target)"
        return f"{other}\n{y} = {call}({x})"

    def _hop_in_a_function(self, carrier: str, number: int, place: str) -> str:
        """What to call, to take an object through a carrier."""
        body = self.main.use(ALL[carrier](x="given", y="taken", n=number))
        if place == "function":
            self.main.head.append(
                f"\n\ndef hop{number}(given):\n{indent(body, 4 * ' ')}\n    return taken\n"
            )
            return f"hop{number}"
        inner = indent(body, 8 * " ")
        self.main.head.append(
            f"\n\nclass Hop{number}:\n    def go(self, given):\n{inner}\n        return taken\n"
        )
        return f"Hop{number}().go"

    def _hop_in_a_file(self, carrier: str, number: int) -> str:
        """The same, where it is in a file of its own."""
        part, module, function = _Text(), f"part{number}", f"hop{number}"
        body = part.use(ALL[carrier](x="given", y="taken", n=number))
        part.write(
            0, f"def {function}(given):\n{indent(body, 4 * ' ')}\n    return taken"
        )
        self.files[f"{module}.py"] = part.module()
        form = self.choose(("from", "module", "as", "star", "importlib", "re-export"))
        if form == "re-export":
            self.files[f"kit{number}/__init__.py"] = (
                f"from {module} import {function} as act\n"
            )
        imports, call = {
            "from": (f"from {module} import {function}", function),
            "module": (f"import {module}", f"{module}.{function}"),
            "as": (f"import {module} as p{number}", f"p{number}.{function}"),
            "star": (f"from {module} import *", function),
            "importlib": (
                "import importlib",
                f"importlib.import_module('{module}').{function}",
            ),
            "re-export": (f"import kit{number}", f"kit{number}.act"),
        }[form]
        self.main.imports.append(f"{imports}\n")
        return call

    def _beside(self, hops: list[str]) -> None:
        """What else there is: another optimizer, and objects that look like one."""
        if self.chance(4):
            self.main.write(
                1, f"other = {self.prefix}{self.choose(DEFINITIONS)}.create(params)"
            )
            hops.append(
                "other = other.apply_gradient(slope(other.target, 0.1))\nfound.append(other.target)"
            )
        decoys = (
            []
            if self.plain
            else self.random.sample([*DECOYS], self.random.choice((0, 0, 1, 2)))
        )
        for decoy in decoys:
            hops.insert(
                self.random.randint(0, len(hops)), self.main.use(DECOYS[decoy]())
            )

    def _train(self, when: str, first: str, last: str, hops: str) -> None:
        reads = [
            self.choose(READS)
            for _ in range(0 if self.plain else self.random.randint(0, 2))
        ]
        if self.chance(8):
            reads.append(self.choose(SELDOM))
        name = first if when == "after" else last
        step = [self.choose(STEPS), *(reads if when != "after" else [])]
        if when == "before":
            self.main.write(1, hops)
        self.main.write(1, "for batch in batches:")
        if when == "each":
            self.main.write(2, hops)
        self.main.write(2, Template("\n".join(step)).substitute(y=name))
        if when == "each":
            self.main.write(2, f"{first} = {last}")
        self.main.write(2, f"found.append({name}.target)")
        if when == "after":
            self.main.write(1, hops)
            self.main.write(1, Template("\n".join(reads)).substitute(y=last))
            self.main.write(1, f"found.append({last}.target)")
        self.main.write(1, "return found, notes")
