"""The lines that are told: an optimizer goes out of view, or comes out of an object unseen, or its state dict is read.

First, what is not told: code beside these lines, and what is no optimizer.
"""

from textwrap import dedent

import pytest

from codemods import Source, migrate
from tests.codemods.programs import result_of


def told(code: str) -> list[str]:
    """The lines of a program with a hint."""
    text = dedent(code).strip()
    [result] = migrate([Source("train.py", text.encode())])
    assert b"optim.Adam" not in result.after
    assert {hint.code for hint in result.hints} <= {"FO932"}
    lines = text.splitlines()
    return [lines[hint.line - 1].strip() for hint in result.hints]


NAMED_LEAVES = """
    import dataclasses
    import jax
    import numpy as np
    from flax import optim, serialization

    def walk(tree):
        if dataclasses.is_dataclass(tree):
            tree = serialization.to_state_dict(tree)
        if isinstance(tree, dict):
            for key in sorted(tree):
                for name, leaf in walk(tree[key]):
                    yield key + "/" + name, leaf
        else:
            yield "", tree

    def store(path, tree):
        leaves, structure = jax.tree_util.tree_flatten(tree)
        numbered = structure.unflatten(range(len(leaves)))
        names, numbers = zip(*walk(numbered))
        order = np.argsort(numbers)
        assert len(names) == len(leaves)
        found = [(names[place], leaf) for place, leaf in zip(order, leaves)]
        with open(path, "wb") as file:
            np.savez(file, **dict(found))

    def train(path, params, grads):
        optimizer = optim.Adam(0.1).create(params).apply_gradient(grads)
        store(path, {"optimizer": optimizer})
    """


def test_a_state_dict_is_read_where_its_keys_are() -> None:
    assert told(NAMED_LEAVES) == [
        "for key in sorted(tree):",
        "for name, leaf in walk(tree[key]):",
    ]


NOT_READ = {
    "its length": "print(len(saved))",
    "it lies in a list": "for index, one in zip(range(2), [saved]): keep(one)",
    "it lies in a dict": "kept = {'optimizer': saved}; keep(kept['optimizer'])",
    "a key that is renamed": "keep(saved['target'])",
    "one of two": "first, second = [saved, None]; keep(first)",
}
READ = {
    "by any key": "keep(saved[key])",
    "sorted": "keep(sorted(saved))",
    "sorted, out of a dict": "kept = {'optimizer': saved}; keep(sorted(kept['optimizer']))",
    "gone through": "for name in saved: keep(name)",
    "items": "keep([name for name, _ in saved.items()])",
    "joined": "keep({**saved, 'epoch': 1})",
    "out of view": "toolbelt.keep([saved])",
}

READING = """
    import toolbelt
    from flax import optim, serialization

    def keep(value):
        print(value)

    def train(params, grads, key):
        optimizer = optim.Adam(0.1).create(params).apply_gradient(grads)
        saved = serialization.to_state_dict(optimizer)
        {}
    """


@pytest.mark.parametrize("line", NOT_READ.values(), ids=NOT_READ)
def test_a_state_dict_that_is_not_read(line: str) -> None:
    assert told(READING.format(line)) == []


@pytest.mark.parametrize("line", READ.values(), ids=READ)
def test_a_state_dict_that_is_read(line: str) -> None:
    assert told(READING.format(line)) == [line]


def test_a_number_that_an_annotation_calls_an_optimizer() -> None:
    assert not told("""
        import jax
        from flax import optim
        from scipy.optimize import minimize

        def fit(scores, width: float) -> tuple[optim.Optimizer, float]:
            found = minimize(scores.mean, width)
            width = jax.lax.stop_gradient(found.x)
            return width, scores / width

        def train(params, grads, scores):
            optimizer = optim.Adam(0.1).create(params)
            width = 1.0
            for grad in grads:
                width, weights = fit(scores, width)
                optimizer = optimizer.apply_gradient(grad)
            return optimizer, width
        """)


def test_an_optimizer_by_its_annotation_alone_that_goes_out_of_view() -> None:
    assert told("""
        import toolbelt
        from flax import optim

        def keep(optimizer: optim.Optimizer):
            toolbelt.keep(optimizer)

        def make(params):
            return optim.Adam(0.1).create(params)
        """) == ["toolbelt.keep(optimizer)"]


RECORD = """
    from typing import NamedTuple
    import collections
    from flax import optim

    class Base(NamedTuple):
        optimizer: optim.Optimizer
        rate: float

    Pair = collections.namedtuple("Pair", "optimizer rate")

    class Named(Pair):
        pass

    def train(params, grads, rate):
        state = {record}(optim.Adam(rate).create(params), rate)
        optimizer = state.optimizer.apply_gradient(grads)
        return state._replace(optimizer=optimizer).optimizer.target
    """


@pytest.mark.parametrize("record", ["Base", "Pair", "Named"])
def test_a_named_tuple_of_the_program_is_in_view(record: str) -> None:
    assert not told(RECORD.format(record=record))


OBJECTS = """
    import sys
    import jax
    from flax import optim

    def make(params):
        return optim.Adam(0.1).create(params)

    class Box:
        def __init__(self, value=None):
            self.value = value

        def __iadd__(self, other):
            self.held = other
            return self

        def __invert__(self):
            return self.value

        def __setitem__(self, key, value):
            setattr(self, "_" + key, value)

        def __class_getitem__(cls, value):
            return value

    current = None

    def train(params, grads, batch, scores):
        optimizer = make(params).apply_gradient(grads)
        {body}
    """

NOT_OUT_OF_OBJECTS = {
    "a parameter of unknown callers": "return batch.target",
    "an element of one": "return batch[0].target",
    "given by a package": "return scores.read(batch).state",
    "another attribute": "return getattr(Box(optimizer), 'val' + 'ue').loss",
    "made by a package of a class": "return scores.Machine(states=Box).state",
    "negated, and that is all": "return not Box(optimizer)",
}
OUT_OF_OBJECTS = {
    "a name that is computed": "box = Box(); box.more = optimizer; return getattr(box, 'mo' + 're').optimize(scores)",
    "a variable that is set by its name": "return current.optimize(scores)",
    "an operator": "return ~Box(optimizer)",
    "an assignment by an operator": "box = Box(); box += optimizer",
    "an item of a class of the program": "Box()['value'] = optimizer",
    "an item of a class": "return Box[optimizer].optimize(scores)",
    "a variable of a module": "setattr(sys.modules[__name__], 'current', optimizer)",
    "a variable of this module": "globals()['current'] = optimizer",
    "a default of a function": "make.__defaults__ = (optimizer,)",
}  # fmt: skip


@pytest.mark.parametrize("line", NOT_OUT_OF_OBJECTS.values(), ids=NOT_OUT_OF_OBJECTS)
def test_what_nothing_of_the_program_gives(line: str) -> None:
    assert told(OBJECTS.format(body=line)) == []


@pytest.mark.parametrize("line", OUT_OF_OBJECTS.values(), ids=OUT_OF_OBJECTS)
def test_what_an_object_of_the_program_gives(line: str) -> None:
    assert told(OBJECTS.format(body=line)) == [line]


@pytest.mark.parametrize("made", ["makers['adam']", "MAKERS['adam']"])
def test_a_rate_in_a_state_that_may_have_none(made: str) -> None:
    """As of what is made elsewhere, and not of what is made here."""
    code = f"""
        MAKERS = {{"adam": optim.Adam(0.1)}}

        def train(makers, params, grads, rate):
            optimizer = {made}.create(params)
            return optimizer.apply_gradient(grads, learning_rate=rate)
        """
    result = result_of(code)
    lines = [(hint.line, hint.code) for hint in result.hints]
    assert lines == [(7, "FO932")] * made.startswith("makers")
