"""Whether evaluating something does nothing but give a value, so that it may be moved or left out."""

from __future__ import annotations

import ast

from codemods.facts import Facts
from codemods.flow.objects import External, Function, Result

DEEPEST = 4
"""How many calls within calls are looked into."""

QUIET_MODULES = (
    *("jax.numpy.", "jax.nn.", "numpy.", "math.", "optax.", "functools.partial", "jax.flatten_util."),
    *("jax.lax.rsqrt", "jax.lax.sqrt", "jax.lax.min", "jax.lax.max", "jax.lax.select", "jax.lax.pmean", "jax.lax.psum"),
    *(
        "jax.tree_leaves",
        "jax.tree_flatten",
        "jax.tree_util.tree_leaves",
        "jax.tree_util.tree_flatten",
        "jax.tree.leaves",
    ),
    *("jax.experimental.optimizers.l2_norm", "jax.example_libraries.optimizers.l2_norm"),
    *("flax.training.lr_schedule.", "flax.optim.ModelParamTraversal", "flax.traverse_util.ModelParamTraversal"),
)
MAPPING = tuple(
    f"{module}{name}"
    for module in ("jax.tree_util.", "jax.tree.", "jax.")
    for name in ("tree_map", "map", "tree_reduce", "reduce")
)
"""What calls its first argument, and does nothing else."""

QUIET_BUILTINS = frozenset(
    f"builtins.{name}"
    for name in (
        *(
            "abs",
            "bool",
            "dict",
            "divmod",
            "enumerate",
            "float",
            "int",
            "isinstance",
            "len",
            "list",
            "max",
            "min",
            "pow",
        ),
        *(
            "range",
            "reversed",
            "round",
            "set",
            "sorted",
            "str",
            "sum",
            "tuple",
            "zip",
            "ValueError",
            "NotImplementedError",
        ),
        *("any", "all", "TypeError", "AssertionError", "KeyError", "RuntimeError"),
    )
)
LOGGING = ("logging.", "absl.logging.", "builtins.print")
QUIET_METHODS = frozenset(
    (
        *(
            "split",
            "strip",
            "lower",
            "upper",
            "format",
            "startswith",
            "endswith",
            "join",
            "get",
            "items",
            "keys",
            "values",
        ),
        *("astype", "sum", "mean", "ravel", "reshape", "flatten"),
    )
)
"""Methods of strings, dictionaries and arrays."""
ACTING = ("pop", "popleft", "send", "next", "get_next", "next_rng_key")
"""Methods that change what they are called on."""

STATEMENTS = (ast.Return, ast.If, ast.For, ast.Raise, ast.Assert, ast.Pass, ast.Expr, ast.Break, ast.Continue)


def acts(node: ast.expr) -> bool:
    """Whether an expression plainly changes something, so that it matters which of two comes first."""
    return any(
        isinstance(inner, ast.NamedExpr | ast.Await | ast.Yield | ast.YieldFrom)
        or (isinstance(inner, ast.Call) and isinstance(inner.func, ast.Name) and inner.func.id == "next")
        or (isinstance(inner, ast.Call) and isinstance(inner.func, ast.Attribute) and inner.func.attr in ACTING)
        for inner in ast.walk(node)
    )


def is_quiet(node: ast.expr, facts: Facts, depth: int = DEEPEST) -> bool:
    """Whether an expression, evaluated earlier, later or not at all, leaves everything else as it is.

    A line in the log counts for nothing.
    """
    match node:
        case ast.Await() | ast.Yield() | ast.YieldFrom() | ast.NamedExpr():
            return False
        case ast.Lambda():
            return True
        case ast.Call():
            return _is_quiet_call(node, facts, depth) and all(
                is_quiet(child, facts, depth) for child in (*node.args, *(word.value for word in node.keywords))
            )
        case _:
            return all(is_quiet(child, facts, depth) for child in _expressions(node))


def _expressions(node: ast.AST) -> list[ast.expr]:
    found: list[ast.expr] = []
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.expr):
            found.append(child)
        elif isinstance(child, ast.comprehension | ast.keyword):
            found += _expressions(child)
    return found


def _is_quiet_call(call: ast.Call, facts: Facts, depth: int) -> bool:
    called = [item for item in facts.objects(call.func) if not isinstance(item, Result)]
    if facts.full_name(call.func) in MAPPING and call.args:
        function = call.args[0]
        return isinstance(function, ast.Lambda) and is_quiet(function.body, facts, depth)
    if not called:
        is_known_method = isinstance(call.func, ast.Attribute) and call.func.attr in QUIET_METHODS
        return is_known_method or _is_quiet_callee(External(facts.full_name(call.func)), facts, depth)
    return all(_is_quiet_callee(item, facts, depth) for item in called)


def _is_quiet_callee(item: object, facts: Facts, depth: int) -> bool:
    match item:
        case External(name=name):
            return name in QUIET_BUILTINS or name.startswith((*QUIET_MODULES, *LOGGING))
        case Function(node=ast.Lambda(body=body)):
            return depth > 0 and is_quiet(body, facts, depth - 1)
        case Function(node=node) if not isinstance(node, ast.Lambda):
            return (
                depth > 0
                and not node.decorator_list
                and all(_is_quiet_statement(part, facts, depth - 1) for part in node.body)
            )
    return False


def _is_quiet_statement(node: ast.stmt, facts: Facts, depth: int) -> bool:
    """Whether a statement of a function changes nothing but the function's own variables."""
    match node:
        case ast.FunctionDef():
            return True
        case ast.Assign(targets=targets):
            own = all(_is_own(target) for target in targets)
        case ast.AugAssign(target=target) | ast.AnnAssign(target=target):
            own = _is_own(target)
        case _:
            own = isinstance(node, STATEMENTS)
    if not own:
        return False
    return all(is_quiet(child, facts, depth) for child in _expressions(node)) and all(
        _is_quiet_statement(child, facts, depth) for child in ast.iter_child_nodes(node) if isinstance(child, ast.stmt)
    )


def _is_own(target: ast.expr) -> bool:
    if isinstance(target, ast.Tuple | ast.List):
        return all(_is_own(element) for element in target.elts)
    return isinstance(target, ast.Name)
