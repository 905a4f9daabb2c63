"""What went wrong where the new code is no equivalent of the old: known mistakes of migrations.

Each is made in the chain that the old definition becomes. One after which that chain moves the
parameters as the new code does is what happened.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import libcst as cst

from codemods.cst.spacing import source
from codemods.model import EmittedOptimizer
from codemods.optimizers import optimizers
from codemods.optimizers.arguments import converted
from optim2optax.parity.optimizer.sampling import constructor

Links = list[ast.expr]
Change = str | Mapping[str, str | None]
"""Other links in the place of one, or other arguments of it, of which None is for one that goes.

In braces are the link itself and its arguments, of which `_0` is the first one without a keyword.
"""

Mistake = tuple[str, str, Change]
"""The names of links, a mistake in words, and what it changes in such a link."""

MULTI_OPTIMIZER = "MultiOptimizer"
DECAY = "add_decayed_weights"
RATE = "scale_by_learning_rate"
ADAM = "scale_by_adam"
RMS = "scale_by_rms"
MOMENTS = f"trace|{ADAM}|{RMS}|scale_by_belief"
MOMENTUM = f"trace|{ADAM}|scale_by_belief"
DEFAULTS = {"b1": "0.9", "b2": "0.999", "decay": "0.9", "eps": "1e-8"}

NEGATIVE = {"_0": "-({_0})"}
# corrected moments times what corrects them
UNCORRECTED = (
    "{link}, optax.scale_by_schedule(lambda count: "
    "(1 - {b1} ** (count + 1)) / (1 - {b2} ** (count + 1)) ** 0.5)"
)
IN_PLACE: tuple[Mistake, ...] = (
    (DECAY, "the weight decay is missing", ""),
    (DECAY, "the weight decay has the wrong sign", NEGATIVE),
    (RATE, "the updates have the wrong sign", "{link}, optax.scale(-1.0)"),
    (
        RATE,
        "the updates are not multiplied by the learning rate",
        "optax.scale(-1.0)",
    ),
    (
        RATE,
        "the updates are multiplied by the learning rate twice",
        "{link}, {link}, optax.scale(-1.0)",
    ),
    ("scale_by_(norm|trust)_ratio", "the trust ratio is missing", ""),
    (MOMENTS, "beta1 is the default of optax", {"b1": None}),
    (MOMENTS, "beta2 is the default of optax", {"b2": None}),
    (MOMENTS, "the decay is the default of optax", {"decay": None}),
    (MOMENTS, "epsilon is the default of optax", {"eps": None}),
    (MOMENTS, "beta1 and beta2 are exchanged", {"b1": "{b2}", "b2": "{b1}"}),
    (MOMENTUM, "Nesterov momentum is missing", {"nesterov": None}),
    (MOMENTUM, "the momentum is Nesterov's", {"nesterov": "True"}),
    ("trace", "there is no momentum", ""),
    (
        "trace",
        "the momentum is an average: gradients are multiplied by one less its decay",
        "optax.ema({decay}, debias=False)",
    ),
    (
        ADAM,
        "epsilon is inside of the square root",
        {"eps": "0.0", "eps_root": "{eps}"},
    ),
    (RMS, "epsilon is inside of the square root", {"eps_in_sqrt": "True"}),
    (ADAM, "the moments are not corrected for their bias", UNCORRECTED),
)
SCHEDULED: tuple[Mistake, ...] = (
    (RATE, "the schedule is a step ahead", {"_0": "lambda count: ({_0})(count + 1)"}),
    (RATE, "the schedule is a step behind", {"_0": "lambda count: ({_0})(count - 1)"}),
)


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
        text = source(new.expression)
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
    function = source(new.expression.func)
    return f"{function}({', '.join(groups)})", supports


def _wrong(right: str, schedule: str) -> Iterator[tuple[str, str]]:
    """The texts of chains with a mistake in one of them, in words."""
    tree = ast.parse(right, mode="eval")
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    chains = [call for call in calls if ast.unparse(call.func) == "optax.chain"]
    known = IN_PLACE
    if schedule:
        known += SCHEDULED
        for rate in calls:
            if _name(rate) == RATE:
                rate.args, rate.keywords = _parsed(schedule), []
    right = ast.unparse(tree)
    for chain in chains:
        links = chain.args
        for words, wrong in (*_moved(links), *_in_place(links, known)):
            # the other groups of a MultiOptimizer stay as they are
            chain.args = wrong
            text = ast.unparse(tree)
            if text != right:
                yield words, text
        chain.args = links
    if len(chains) == 2:
        first, second = chains
        first.args, second.args = second.args, first.args
        yield "the groups of parameters are exchanged", ast.unparse(tree)


def _moved(links: Links) -> Iterator[tuple[str, Links]]:
    """The links with the weight decay at another place."""
    names = [*map(_name, links)]
    if DECAY not in names:
        return
    at = names.index(DECAY)
    decay = links[at]
    rest = [*links[:at], *links[at + 1 :]]
    behind = "the weight decay is not multiplied by the learning rate"
    yield f"{behind}, and has the wrong sign", [*rest, decay]
    yield behind, [*rest, *_instead(decay, NEGATIVE)]
    if at:
        yield "the weight decay is added ahead of the moments", [decay, *rest]
    elif RATE in names:
        last = names.index(RATE) - 1
        ahead = [*rest[:last], decay, *rest[last:]]
        yield "the weight decay is added behind the momentum", ahead


def _in_place(links: Links, known: Sequence[Mistake]) -> Iterator[tuple[str, Links]]:
    """The links with others in the place of one of them."""
    for number, link in enumerate(links):
        for names, words, change in known:
            if re.fullmatch(names, _name(link)):
                others = _instead(link, change)
                yield words, [*links[:number], *others, *links[number + 1 :]]


def _instead(link: ast.expr, change: Change) -> Links:
    """What a mistake puts in the place of a link."""
    assert isinstance(link, ast.Call)
    given = {f"_{number}": ast.unparse(one) for number, one in enumerate(link.args)}
    given |= {word.arg: ast.unparse(word.value) for word in link.keywords if word.arg}
    known = {**DEFAULTS, **given, "link": ast.unparse(link)}
    if isinstance(change, str):
        return _parsed(change.format_map(known))
    for word, value in change.items():
        # an injected argument has a keyword
        if word == "_0" and word not in given:
            return [link]
        given[word] = "" if value is None else value.format_map(known)
    arguments = [
        value if word.startswith("_") else f"{word}={value}"
        for word, value in given.items()
        if value
    ]
    return _parsed(f"{ast.unparse(link.func)}({', '.join(arguments)})")


def _name(link: ast.expr) -> str:
    """The last word of what makes a link: of `inject(optax.scale)(rate)` that is `scale`."""
    match link:
        case ast.Call(func=ast.Call(args=[function])):
            return ast.unparse(function).rpartition(".")[2]
    return constructor(link)


def _parsed(text: str) -> Links:
    """The links in a text."""
    return ast.parse(f"f({text})", mode="eval").body.args  # type: ignore[attr-defined, no-any-return]
