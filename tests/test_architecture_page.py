"""docs/architecture.md: what it says is where it says that it is."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs" / "architecture.md").read_text()
QUESTION = re.compile(r"^\| (.*\?) \| `(\S+\.py)` \| `(\w+)` \|$", re.MULTILINE)
QUESTIONS = QUESTION.findall(PAGE)
ROOM = re.compile(r"^\| (`.*`) \| .* \|$", re.MULTILINE)


def test_there_are_ten_questions() -> None:
    assert len(QUESTIONS) == 10


@pytest.mark.parametrize(("question", "path", "name"), QUESTIONS)
def test_a_question_is_answered_there(question: str, path: str, name: str) -> None:
    """The file defines that name, and says what it is: in a docstring, or in a text below it."""
    body = ast.parse((ROOT / path).read_text()).body
    places = [number for number, node in enumerate(body) if name in _defined(node)]
    assert len(places) == 1, question
    node = body[places[0]]
    if isinstance(node, ast.FunctionDef | ast.ClassDef) and ast.get_docstring(node):
        return
    if isinstance(node, ast.Assign | ast.AnnAssign):
        below = body[places[0] + 1]
        assert isinstance(below, ast.Expr)
        assert isinstance(below.value, ast.Constant)
        return
    # all of a module about an optimizer is about the one
    assert ast.get_docstring(ast.parse((ROOT / path).read_text()))


def _defined(node: ast.stmt) -> set[str]:
    """The names that a statement at the top level defines."""
    match node:
        case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
            return {name}
        case (
            ast.AnnAssign(target=ast.Name(id=name))
            | ast.Assign(targets=[ast.Name(id=name)])
        ):
            return {name}
    return set()


def test_each_room_is_there_and_none_is_left_out() -> None:
    rooms = {*re.findall(r"`(\w+)/?`", "\n".join(ROOM.findall(PAGE)))}
    paths = [path for path in (ROOT / "codemods").iterdir() if path.stem[0] not in "._"]
    assert rooms >= {path.stem for path in paths if path.suffix in ("", ".py")}


def test_what_the_text_names_is_there() -> None:
    """Files and folders in backticks, as `rewriting/imports`, are in one of the two packages."""
    named = set(re.findall(r"`([a-z_2]+(?:/[a-z_]+)+)(?:\.py)?/?`", PAGE))
    packages = [ROOT, ROOT / "codemods", ROOT / "optim2optax"]
    for word in named:
        places = [package / word for package in packages]
        places += [place.with_name(f"{place.name}.py") for place in places]
        assert any(place.exists() for place in places), word
