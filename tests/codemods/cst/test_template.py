"""Templates: what is put into a hole keeps its text and its meaning."""

import libcst as cst
import pytest

from codemods.cst.template import expression, statement


def text(node: cst.CSTNode) -> str:
    return cst.Module([]).code_for_node(node)


@pytest.mark.parametrize(
    ("template", "hole", "filled"),
    [
        pytest.param("{x}", "a if b else c", "a if b else c", id="nothing but a hole"),
        pytest.param("{x}.params", "optimizer", "optimizer.params", id="a name"),
        pytest.param("{x}.params", "self.states[ 0 ]", "self.states[ 0 ].params", id="spaces kept"),
        pytest.param("{x}.params", "f(a)(b)", "f(a)(b).params", id="calls"),
        pytest.param("{x}.params", "(a or b)", "(a or b).params", id="in parentheses already"),
        pytest.param("{x}.params", "a or b", "(a or b).params", id="an operation as receiver"),
        pytest.param("{x}.params", "lambda: a", "(lambda: a).params", id="a function as receiver"),
        pytest.param("{x}.format()", "'a' 'b'", "('a' 'b').format()", id="strings side by side"),
        pytest.param("{x} is not None", "a or b", "(a or b) is not None", id="an operation as operand"),
        pytest.param("f({x})", "a or b", "f(a or b)", id="an argument"),
        pytest.param("f({x})", "lambda: a", "f(lambda: a)", id="a function as argument"),
        pytest.param("f(k={x})", "(a := b)", "f(k=(a := b))", id="an assignment as argument"),
        pytest.param("f({x}, 1)", "(a for a in b)", "f((a for a in b), 1)", id="a generator as argument"),
        pytest.param("f('{', {x})", "'{y}'", "f('{', '{y}')", id="braces in strings"),
        pytest.param("{x}.params", "(a\n.b)", "(a\n.b).params", id="lines within parentheses"),
        pytest.param("{x}.params", "f(\n    a,  # why\n)", "f(\n    a,  # why\n).params", id="lines and comments"),
    ],
)  # fmt: skip
def test_fills(template: str, hole: str, filled: str) -> None:
    assert text(expression(template, x=cst.parse_expression(hole))) == filled


BARE = ["a\n  .b", "a\n  .b()", "a +\n  b", "a := b", "a for a in b", "'a'\n  'b'"]


@pytest.mark.parametrize("template", ["{x}", "{x}.params", "f(1, k={x})"])
@pytest.mark.parametrize("argument", BARE)
def test_what_stood_in_parentheses_gets_its_own(template: str, argument: str) -> None:
    call = cst.ensure_type(cst.parse_expression(f"f({argument})"), cst.Call)

    filled = expression(template, x=call.args[0].value)

    compile(text(statement("y = {x}", x=filled)), "", "exec")
