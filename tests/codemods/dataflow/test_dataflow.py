"""What may happen between two moments, what that changes, and which settings a read may find."""

import ast
from textwrap import indent

import pytest

from codemods.analysis.facts import Facts
from codemods.dataflow.moments import Dataflow
from codemods.inference.control_flow import ENTRY, EXIT, Order
from codemods.sources.modules import Unit
from tests.codemods.programs import program


class Program:
    """A program with its dataflow, in which nodes are found by their source text."""

    def __init__(self, text: str, **others: str) -> None:
        texts = {"train": text, **others}
        self.units = [_unit(f"{name}.py", program(one)) for name, one in texts.items()]
        self.facts = Facts(self.units)
        self.dataflow: Dataflow = self.facts.dataflow

    def at(self, source: str, index: int = 0) -> ast.expr:
        """The expression that reads so, in the order of the lines."""
        nodes = [node for unit in self.units for node in unit.nodes]
        read = [
            node
            for node in nodes
            if isinstance(node, ast.expr)
            if not isinstance(getattr(node, "ctx", None), ast.Store)
        ]
        found = [node for node in read if ast.unparse(node) == source]
        return sorted(found, key=lambda node: (node.lineno, node.col_offset))[index]

    def stays(self, source: str) -> bool:
        """Whether an expression has the same value from its first evaluation to the call of `use`."""
        return self.dataflow.stays([self.at(source)], self.at(source), self.at("use()"))


def _unit(path: str, code: str) -> Unit:
    return Unit(path, code, ast.parse(code))


BETWEEN = {
    "a branch that is not taken on the way": ("first()\nif test:\n    between()\nsecond()", True),
    "a branch that leaves": ("first()\nif test:\n    between()\n    raise Stop\nsecond()", False),
    "a branch that returns": ("first()\nif test:\n    between()\n    return\nsecond()", False),
    "the other branch": ("if test:\n    first()\nelse:\n    between()\nsecond()", False),
    "a loop around both": ("for x in xs:\n    first()\n    second()\n    between()", False),
    "a loop around the second": ("first()\nfor x in xs:\n    second()\n    between()", True),
    "a loop that is left": ("first()\nfor x in xs:\n    second()\n    between()\n    break", False),
    "what a loop does when it ends": ("first()\nfor x in xs:\n    pass\nelse:\n    between()\nsecond()", True),
    "an endless loop": ("first()\nwhile True:\n    second()\nbetween()", False),
    "a handler": ("try:\n    first()\nexcept E:\n    between()\nsecond()", True),
    "a handler of what comes later": ("first()\ntry:\n    second()\nexcept E:\n    between()", False),
    "what is done in the end": ("try:\n    first()\n    return\nfinally:\n    between()\n    second()", True),
    "a case": ("first()\nmatch x:\n    case 1:\n        between()\nsecond()", True),
    "a body of `with`": ("first()\nwith x:\n    between()\nsecond()", True),
    "a definition": ("first()\ndef later():\n    between()\nsecond()", False),
    "a lambda": ("first()\nlater = lambda: between()\nsecond()", False),
    "a body of a class": ("first()\nclass C:\n    between()\nsecond()", True),
    "an argument": ("f(first(), between(), second())", True),
    "an argument behind": ("f(first(), second(), between())", False),
    "another operand": ("first() and between() and second()", True),
    "one of two values": ("(between() if first() else x), second()", True),
    "an element of a comprehension": ("first()\n[between() for x in xs]\nsecond()", True),
    "a value ahead of its target": ("x[first()] = between(), second()", False),
}  # fmt: skip


def ordered(body: str) -> tuple[Order, dict[str, int]]:
    """The order in which a function evaluates, and the numbers of its calls in that."""
    [function] = ast.parse(f"def f():\n{indent(body, '    ')}").body
    assert isinstance(function, ast.FunctionDef)
    order = Order(function)
    calls = [node for node in order.at if isinstance(node, ast.Call)]
    return order, {ast.unparse(node): order.at[node] for node in calls}


@pytest.mark.parametrize(("body", "is_between"), BETWEEN.values(), ids=BETWEEN)
def test_what_may_happen_between_two_evaluations(body: str, is_between: bool) -> None:
    order, numbers = ordered(body)

    reached = order.between(numbers["first()"], numbers["second()"])

    assert (numbers.get("between()") in reached) == is_between


def test_an_evaluation_that_each_way_leads_through() -> None:
    order, numbers = ordered("if a():\n    b()\nc()")

    assert order.dominates(numbers["a()"], numbers["c()"])
    assert order.dominates(ENTRY, numbers["b()"])
    assert not order.dominates(numbers["b()"], numbers["c()"])
    assert EXIT in order.forward(numbers["c()"])


REACHING = {
    "the last of two": ("x = 1\nx = 2\nuse(x)", {3}),
    "either of two branches": ("x = 1\nif test:\n    x = 2\nuse(x)", {2, 4}),
    "a parameter": ("use(p)", {1}),
    "a parameter that may be set": ("if p is None:\n    p = 0\nuse(p)", {1, 3}),
    "what the last turn of a loop set": ("x = 0\nwhile x:\n    x = x + 1\nuse(x)", {2, 4}),
    "the target of a loop": ("for x in xs:\n    use(x)", {2}),
    "what is set within an expression": ("if (x := f()):\n    use(x)", {2}),
    "what a handler is given": ("try:\n    f()\nexcept E as x:\n    use(x)", {4}),
    "what `with` gives": ("with f() as x:\n    use(x)", {2}),
    "what a pattern takes": ("match y:\n    case [x]:\n        use(x)", {3}),
    "an import": ("import x\nuse(x)", {2}),
    "what a function within is": ("def x():\n    pass\nuse(x)", {2}),
}  # fmt: skip


@pytest.mark.parametrize(("body", "lines"), REACHING.values(), ids=REACHING)
def test_the_settings_that_a_read_may_find(body: str, lines: set[int]) -> None:
    found = Program(f"def f(p):\n{indent(body, '    ')}")
    calls = [node for node in found.units[0].nodes if isinstance(node, ast.Call)]
    [name] = [call.args[0] for call in calls if ast.unparse(call.func) == "use"]
    assert isinstance(name, ast.Name)
    variable = found.dataflow.definitions.variable(name)
    assert variable is not None

    stores = found.dataflow.definitions.reaching(name, variable)

    assert stores is not None
    assert {getattr(store, "lineno", 0) for store in stores} == lines


QUIET = {
    "a number": ("1 + 2", True),
    "a function of NumPy": ("np.sqrt(x)", True),
    "a function of NumPy that sets": ("np.copyto(x, y)", False),
    "random numbers of NumPy": ("np.random.rand()", False),
    "random numbers of JAX, which have no state": ("jax.random.split(key)", True),
    "a line in the log": ("logging.info(x)", True),
    "a method of text": ("'a b'.split()", True),
    "a method that texts alone have": ("x.split()", True),
    "one that something in view has, too": ("x.strip()", False),
    "an element of a dictionary": ("{'a': 1}.get('a')", True),
    "an element of a queue": ("x.get()", False),
    "the next of an iterator": ("next(x)", False),
    "what is set within": ("(y := 1)", False),
    "a function of which nothing is known": ("unknown(x)", False),
    "a function in view": ("double(x)", True),
    "one that calls itself": ("again(x)", True),
    "one that sets a variable of the module": ("count()", False),
    "one that sets what it is given": ("fill(x)", False),
    "one that sets a list of its own": ("collect(x)", True),
    "a function that is mapped": ("jax.tree_util.tree_map(double, x)", True),
    "one of which nothing is known": ("jax.tree_util.tree_map(unknown, x)", False),
    "the sum of a list": ("sum([x, y])", True),
    "the sum of what may be an iterator": ("sum(x)", False),
    "a function, which is not called": ("lambda: unknown(x)", True),
}


@pytest.mark.parametrize(("expression", "has_no_effect"), QUIET.values(), ids=QUIET)
def test_whether_evaluating_leaves_all_else_as_it_is(
    expression: str, has_no_effect: bool
) -> None:
    found = Program(f"""
        import logging
        import jax
        import numpy as np
        from elsewhere import unknown

        TOTAL = 0

        class Paint:
            def strip(self):
                self.coats = 0

        def double(v):
            w = 2 * v
            return w

        def again(v):
            return v if v < 1 else again(v - 1)

        def count():
            global TOTAL
            TOTAL = TOTAL + 1

        def fill(v):
            v.rate = 1

        def collect(v):
            values = []
            values.append(v)
            return values

        def f(x, y, key):
            return {expression}
        """)
    node = found.at(ast.unparse(ast.parse(expression, mode="eval").body))

    assert found.dataflow.has_no_effect(node) == has_no_effect


STAYS = {
    "nothing in between": ("x = config.lr", "config.lr", True),
    "another attribute is set": ("x = config.lr\nconfig.size = 1", "config.lr", True),
    "it is set": ("x = config.lr\nconfig.lr = 1", "config.lr", False),
    "it is set by another name": ("x = config.lr\nother = config\nother.lr = 1", "config.lr", False),
    "it is set under some name": ("x = config.lr\nsetattr(config, name, 1)", "config.lr", False),
    "it may be set by a function out of view": ("x = config.lr\nfinalize(config)", "config.lr", False),
    "and not a variable": ("x = rate\nfinalize(config)", "rate", True),
    "a line in the log": ("x = config.lr\nprint(config)", "config.lr", True),
    "a function in view sets it": ("x = config.lr\nhalve(config)", "config.lr", False),
    "a function in view reads it": ("x = config.lr\ndouble(config)", "config.lr", True),
    "a variable is set": ("x = rate\nrate = 1", "rate", False),
    "a variable is set within a function that is called": ("x = rate\nreset()", "rate", False),
    "an element is set": ("x = rates['a']\nrates['a'] = 1", "rates['a']", False),
    "some element is set": ("x = rates['a']\nrates[name] = 1", "rates['a']", False),
    "another element is set": ("x = rates['a']\nrates['b'] = 1", "rates['a']", True),
    "a list of this function alone, whatever else is done": ("x = own[0]\nfinalize(config)", "own[0]", True),
    "a list that was given away before, and is not any more":
        ("finalize(own)\nx = own[0]\nfinalize(config)", "own[0]", True),
    "a list that is given away": ("x = own[0]\nfinalize(own)", "own[0]", False),
    "a list that is given away in another": ("x = own[0]\nfinalize({'own': [own]})", "own[0]", False),
    "something else is given to a function out of view": ("x = config.width\nfinalize(rate)", "config.width", True),
    "it is given away in a dict": ("x = config.width\nfinalize({'config': config})", "config.width", False),
    "it is given away by another name": ("cfg = config\nx = config.width\nfinalize(cfg)", "config.width", False),
    "it is given away as an attribute of something":
        ("name.config = config\nx = config.width\nfinalize(name.config)", "config.width", False),
    "an attribute of it is given away, and not another":
        ("x = config.width\nfinalize(config.model)", "config.width", True),
    "an object in it is given away": ("x = config.model.width\nfinalize(config.model)", "config.model.width", False),
    "its value is given away": ("x = config.width\nfinalize(config.width)", "config.width", True),
    "a function in view gives it away": ("x = config.width\nshow(config)", "config.width", False),
    "its own method, which is out of view": ("x = config.width\nconfig.update(1)", "config.width", False),
    "one of its elements is set under some name": ("x = config['lr']\nconfig[name] = 1", "config['lr']", False),
    "an element of something else is set under some name": ("x = config['lr']\nother[name] = 1", "config['lr']", True),
    "an attribute of this name is set somewhere, and perhaps by what is called":
        ("x = config.base\npick(rate)", "config.base", False),
    "it calls what acts itself": ("x = pick(config)", "pick(config)", False),
}  # fmt: skip


@pytest.mark.parametrize(("body", "source", "stays"), STAYS.values(), ids=STAYS)
def test_whether_an_expression_has_the_same_value_later(
    body: str, source: str, stays: bool
) -> None:
    found = Program(f"""
        from elsewhere import finalize, pick

        def halve(c):
            c.lr = c.lr / 2

        def double(c):
            return 2 * c.lr

        def show(c):
            finalize(c)

        def decay(c):
            c.base = c.base / 2

        def train(config, rates, name, rate, other):
            own = [1, 2]
            def reset():
                nonlocal rate
                rate = 0
{indent(body, 12 * " ")}
            use()
        """)

    assert found.stays(source) == stays


SWAPS = {
    "two that only read": ("a.x", "b.x", True),
    "two functions of which nothing is known": ("f()", "g()", False),
    "one of them, and a constant": ("f()", "1", True),
    "one of them, and an attribute": ("f()", "b.x", True),
    "one of them, and an attribute of what it is given": ("f(b)", "b.x", False),
    "one of them, and a function that is given the same": ("f(b)", "len(b)", False),
    "one of them, and a function that is given another": ("f(a)", "len(b)", True),
    "one of them, and one that sets an attribute": ("f()", "setattr(b, 'x', 1)", False),
    "one of them, and a variable": ("f()", "a", True),
    "a variable that the other sets": ("(a := 1)", "a", False),
}


@pytest.mark.parametrize(("one", "other", "may"), SWAPS.values(), ids=SWAPS)
def test_whether_two_expressions_may_change_places(
    one: str, other: str, may: bool
) -> None:
    both = f"def h(a, b):\n    return [{one}, {other}]"
    found = Program(f"from elsewhere import f, g\n{both}")
    [display] = [node for node in found.units[0].nodes if isinstance(node, ast.List)]
    first, second = display.elts

    assert found.dataflow.may_swap(first, second) == may
    assert found.dataflow.may_swap(second, first) == may


def test_what_a_library_does_outside_changes_nothing_that_it_is_not_given() -> None:
    found = Program("""
        from flax.training import checkpoints

        def train(config, state):
            x = config.lr
            checkpoints.save_checkpoint("runs", state, 1)
            use()
        """)
    save = found.at("checkpoints.save_checkpoint('runs', state, 1)")

    assert found.stays("config.lr")
    assert not found.dataflow.has_no_effect(save)
