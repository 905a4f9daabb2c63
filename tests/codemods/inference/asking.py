"""Programs that say beside a line what an expression is, and what inference answers.

A line with `# makes: actor` gives a name to the objects that are made there. A line with
`# is: actor` says what the receiver is of which it reads `.target`; if it reads none, of its
outermost attribute. An answer may be

- `actor`, the optimizer that is made there, or `definition actor`, and so on for other kinds,
- `Trainer`, an instance of a class of the project, `class Trainer`, or `def step`,
- `queue.Queue()` or `jax.jit`, what a package out of view made, or has,
- `box`, some container,
- several of these, with `|` between them, in the order of the alphabet,
- `unknown`.
"""

import ast
import re
from collections.abc import Iterable, Mapping

import pytest

from codemods.analysis.flax_optim import FlaxOptim
from codemods.inference.engine import Inference
from codemods.inference.objects import (
    Class,
    Container,
    External,
    Function,
    Instance,
    LegacyObject,
    Result,
    plain,
)
from codemods.sources.modules import Project, Unit
from tests.codemods.programs import files, table

PRELUDE = """
import collections
import contextlib
import copy
import dataclasses
import functools
import itertools
import operator
from functools import partial
from typing import Any, NamedTuple

import flax
import jax
import jax.numpy as jnp
import numpy as np
from flax import jax_utils, optim, serialization
from jax import lax

"""
"""What a program of one file begins with."""

MAKES = re.compile(r"# makes: (\w+)$")
IS = re.compile(r"# is: (.+)$")

Answers = dict[str, str]
"""By file, line and text."""


def said(texts: Mapping[str, str]) -> Answers:
    """What a program says of itself."""
    found: Answers = {}
    for path, text in texts.items():
        for number, line in enumerate(text.splitlines(), 1):
            if match := IS.search(line):
                found[_key(path, number, text)] = match[1]
    return found


def answered(texts: Mapping[str, str], *, backwards: bool = False) -> Answers:
    """What inference says of each line that has an answer."""
    paths = sorted(texts, reverse=backwards)
    units = [Unit(path, texts[path], ast.parse(texts[path])) for path in paths]
    engine = Inference(Project(units, {}), FlaxOptim())
    asked = {
        _key(unit.path, number, unit.code): receiver(unit, number)
        for unit in units
        for number, line in enumerate(unit.code.splitlines(), 1)
        if IS.search(line)
    }
    questions = list(asked.items())
    answers = {
        key: shown(engine.solver.at(("expression", node, None)))
        for key, node in (reversed(questions) if backwards else questions)
    }
    return {key: answers[key] for key in asked}


def _key(path: str, number: int, text: str) -> str:
    return f"{path}:{number} {text.splitlines()[number - 1].strip()}"


def receiver(unit: Unit, number: int) -> ast.expr:
    """The expression that a line asks about."""
    read = [
        node
        for node in unit.nodes
        if isinstance(node, ast.Attribute) and node.end_lineno == number
    ]
    [*targets] = (node for node in read if node.attr == "target")
    return (targets or read)[0].value


def shown(items: Iterable[object]) -> str:
    return " | ".join(sorted({_shown(item) for item in items})) or "unknown"


def _shown(item: object) -> str:
    match plain(item):
        case LegacyObject(kind=kind, unit=unit, node=node):
            line = unit.code.splitlines()[node.lineno - 1]  # type: ignore[attr-defined]
            label = MAKES.search(line)
            name = label[1] if label else line.strip()
            return name if kind == "optimizer" else f"{kind} {name}"
        case Instance(cls=cls):
            return cls.node.name
        case Class(node=node):
            return f"class {node.name}"
        case Function(node=node):
            return "lambda" if isinstance(node, ast.Lambda) else f"def {node.name}"
        case External(name=name):
            return name
        case Result(name=name):
            return f"{name}()"
        case Container():
            return "box"
        case other:
            return type(other).__name__.lower()


def assert_answers(text: str) -> None:
    """Inference answers what a program says, whatever the order of files and questions."""
    texts = files(text) or {"train.py": PRELUDE + text}
    expected = said(texts)
    assert expected, "nothing is asked"
    assert answered(texts) == expected
    assert answered(texts, backwards=True) == expected


def each(programs: str) -> pytest.MarkDecorator:
    """A test for each program of a table."""
    return pytest.mark.parametrize("text", table(programs, values=1))
