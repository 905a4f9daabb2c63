"""What went wrong where the new code is no equivalent of the old: known mistakes of migrations.

Each is made in the chain that the old definition becomes. One after which that chain moves the
parameters as the new code does is what happened.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator, Sequence
from dataclasses import replace

import libcst as cst

from codemods.model import EmittedOptimizer
from codemods.optimizers import optimizers
from codemods.optimizers.arguments import converted
from optim2optax.parity.optimizer.sampling import constructor

Links = list[ast.expr]
Mistake = tuple[str, Links]
"""What was done wrong, in words, and the links of a chain in which it is."""

MULTI_OPTIMIZER = "MultiOptimizer"
DECAY = "add_decayed_weights"
RATE = "scale_by_learning_rate"
MOMENTS = ("trace", "scale_by_adam", "scale_by_rms", "scale_by_belief")
DEFAULTS = {"b1": "beta1", "b2": "beta2", "decay": "the decay", "eps": "epsilon"}


def mistakes(emitted: EmittedOptimizer) -> Iterator[tuple[str, EmittedOptimizer]]:
    """Known mistakes in words, each with the optimizer that makes it in the place of the new one.

    There are none of a definition that is no call of a legacy class.
    """
    right = _right(
        ast.parse(emitted.legacy_expression, mode="eval").body, emitted.injected
    )
    if right is None:
        return
    expression, supports = right
    for words, text in _wrong(expression, emitted.schedule):
        yield words, replace(emitted, optax_expression=text, supports=supports)


def _right(node: ast.expr, injected: bool) -> tuple[str, tuple[str, ...]] | None:
    """What a definition becomes, in chains, and the helpers that this needs."""
    legacy = optimizers().get(constructor(node))
    if legacy is None or not isinstance(node, ast.Call):
        return None
    call = cst.ensure_type(cst.parse_expression(ast.unparse(node)), cst.Call)
    new = converted(legacy, call, "chain", injected)
    supports = tuple(support.source for support in new.supports)
    if legacy.name != MULTI_OPTIMIZER:
        text = cst.Module([]).code_for_node(new.expression)
        is_chain = text.startswith("optax.chain(")
        return text if is_chain else f"optax.chain({text})", supports
    groups: list[str] = []
    for part in node.args:
        match part:
            # (optim.ModelParamTraversal(is_kernel), optim.Adam(rate))
            case ast.Tuple(elts=[ast.Call(args=[selects]), definition]):
                inner = _right(definition, injected)
            case _:
                inner = None
        if inner is None:
            return None
        groups.append(f"({ast.unparse(selects)}, {inner[0]})")
        supports += tuple(one for one in inner[1] if one not in supports)
    function = cst.Module([]).code_for_node(new.expression.func)
    return f"{function}({', '.join(groups)})", supports


def _wrong(right: str, schedule: str) -> Iterator[tuple[str, str]]:
    """The texts of chains with a mistake in one of them, in words."""
    tree = ast.parse(right, mode="eval")
    chains = _chains(tree)
    for number, chain in enumerate(chains):
        if schedule:
            _set_rate(chain.args, ast.parse(schedule, mode="eval").body)
        for words, links in _of_chain(chain.args, bool(schedule)):
            # the other groups of a MultiOptimizer stay as they are
            other = copy.deepcopy(tree)
            _chains(other)[number].args = links
            yield words, ast.unparse(ast.fix_missing_locations(other))
    if len(chains) == 2:
        first, second = chains
        first.args, second.args = second.args, first.args
        yield "the groups of parameters are exchanged", ast.unparse(tree)


def _chains(tree: ast.AST) -> list[ast.Call]:
    calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call))
    return [call for call in calls if ast.unparse(call.func) == "optax.chain"]


def _of_chain(links: Links, has_schedule: bool) -> Iterator[Mistake]:
    yield from _decay(links)
    yield from _rate(links, has_schedule)
    for number, link in enumerate(links):
        if isinstance(link, ast.Call):
            for words, others in _of_link(link):
                yield words, [*links[:number], *others, *links[number + 1 :]]


def _decay(links: Links) -> Iterator[Mistake]:
    at = _index(links, DECAY)
    if at is None:
        return
    decay = links[at]
    rest = [*links[:at], *links[at + 1 :]]
    assert isinstance(decay, ast.Call)
    negative = copy.deepcopy(decay)
    negative.args = [ast.UnaryOp(ast.USub(), one) for one in negative.args]
    yield "the weight decay is missing", rest
    yield (
        "the weight decay has the wrong sign",
        [*links[:at], negative, *links[at + 1 :]],
    )
    behind = "the weight decay is not multiplied by the learning rate"
    yield f"{behind}, and has the wrong sign", [*rest, decay]
    yield behind, [*rest, negative]
    if at:
        yield "the weight decay is added ahead of the moments", [decay, *rest]
    elif _index(links, RATE) is not None:
        yield "the weight decay is added behind the momentum", _inserted(rest, decay)


def _rate(links: Links, has_schedule: bool) -> Iterator[Mistake]:
    at = _index(links, RATE)
    if at is None:
        return
    rate = links[at]
    others = [*links[:at], *links[at + 1 :]]
    yield "the updates have the wrong sign", [*links, _parsed("optax.scale(-1.0)")]
    yield (
        "the updates are not multiplied by the learning rate",
        [*others, _parsed("optax.scale(-1.0)")],
    )
    yield (
        "the updates are multiplied by the learning rate twice",
        [*links, rate, _parsed("optax.scale(-1.0)")],
    )
    if has_schedule and isinstance(rate, ast.Call):
        for step, words in ((1, "ahead"), (-1, "behind")):
            text = f"lambda count: ({ast.unparse(rate.args[0])})(count + {step})"
            moved = copy.deepcopy(rate)
            moved.args = [_parsed(text)]
            yield f"the schedule is a step {words}", [*others, moved]


def _of_link(link: ast.Call) -> Iterator[Mistake]:
    """Mistakes within one link, each with what stands in its place."""
    name = _name(link)
    if name in ("scale_by_norm_ratio", "scale_by_trust_ratio"):
        yield "the trust ratio is missing", []
    if name not in MOMENTS:
        return
    keywords = {word.arg: word.value for word in link.keywords if word.arg}
    for word, words in DEFAULTS.items():
        if word in keywords:
            without = _with(link, **{word: None})
            yield f"{words} is the default of optax", [without]
    if {"b1", "b2"} <= keywords.keys():
        swapped = _with(link, b1=keywords["b2"], b2=keywords["b1"])
        yield "beta1 and beta2 are exchanged", [swapped]
    nesterov = keywords.get("nesterov")
    is_on = isinstance(nesterov, ast.Constant) and nesterov.value is True
    if name != "scale_by_rms":
        yield (
            "Nesterov momentum is missing" if is_on else "the momentum is Nesterov's",
            [_with(link, nesterov=ast.Constant(not is_on))],
        )
    if name == "trace":
        yield "there is no momentum", []
        average = ast.unparse(keywords.get("decay", ast.Constant(0.9)))
        yield (
            "the momentum is an average: gradients are multiplied by one less its decay",
            [_parsed(f"optax.ema({average}, debias=False)")],
        )
    if name == "scale_by_adam":
        eps = keywords.get("eps", ast.Constant(1e-8))
        inside = _with(link, eps=ast.Constant(0.0), eps_root=eps)
        yield "epsilon is inside of the square root", [inside]
        yield "the moments are not corrected for their bias", [_uncorrected(keywords)]
    if name == "scale_by_rms":
        is_inside = ast.Constant(True)
        yield (
            "epsilon is inside of the square root",
            [_with(link, eps_in_sqrt=is_inside)],
        )


def _uncorrected(keywords: dict[str, ast.expr]) -> ast.expr:
    """Adam whose moments are divided by nothing."""

    def text(name: str, default: str) -> str:
        return ast.unparse(keywords[name]) if name in keywords else default

    b1, b2 = text("b1", "0.9"), text("b2", "0.999")
    # corrected moments times what corrects them
    return _parsed(
        f"optax.chain(optax.scale_by_adam({b1}, {b2}, eps={text('eps', '1e-8')}), "
        f"optax.scale_by_schedule(lambda count: "
        f"(1 - {b1} ** (count + 1)) / (1 - {b2} ** (count + 1)) ** 0.5))"
    )


# Links


def _name(link: ast.expr) -> str:
    """The last word of what makes a link: of `inject(optax.scale)(rate)` that is `scale`."""
    match link:
        case ast.Call(func=ast.Call(args=[function])):
            return ast.unparse(function).rpartition(".")[2]
        case ast.Call(func=function):
            return ast.unparse(function).rpartition(".")[2]
    return ""


def _index(links: Sequence[ast.expr], name: str) -> int | None:
    names = [*map(_name, links)]
    return names.index(name) if name in names else None


def _inserted(links: Links, decay: ast.expr) -> Links:
    """The links with the decay ahead of the learning rate."""
    at = _index(links, RATE)
    return [*links[:at], decay, *links[at:]]


def _with(link: ast.Call, **values: ast.expr | None) -> ast.Call:
    """A link with other keywords; None is for one that goes."""
    found = copy.deepcopy(link)
    found.keywords = [word for word in found.keywords if word.arg not in values]
    found.keywords += [
        ast.keyword(name, value) for name, value in values.items() if value is not None
    ]
    return found


def _set_rate(links: Links, schedule: ast.expr) -> None:
    at = _index(links, RATE)
    link = None if at is None else links[at]
    if isinstance(link, ast.Call):
        link.args, link.keywords = [schedule], []


def _parsed(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body
