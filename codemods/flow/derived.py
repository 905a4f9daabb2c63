"""What may come out of functions of which nothing is known: anything that went in."""

from __future__ import annotations

from collections.abc import Iterable

from codemods.flow.calls import Calls, CallSite
from codemods.flow.objects import Container, Derived, External, Function, Method, Place, Thing

DEEPEST_NESTING = 3
"""How deep in the arguments of an unknown function a thing is looked for."""

Sources = dict[Thing, None]


def derive(flow: Calls, calls: Iterable[tuple[Place, CallSite]]) -> bool:
    """Let what unknown functions return, and hand to functions, be derived from their arguments. Whether any of that was new."""
    held = _held_by_containers(flow)
    new = False
    for callee, site in calls:
        if not _is_unknown(flow, callee):
            continue
        arguments = (*site.positional, *site.keywords.values(), *site.unpacked)
        for source in _sources(flow, arguments, held):
            for place in (site.result, *_parameters(flow, arguments)):
                if Derived(source) not in flow.solver.at(place):
                    flow.solver.add(place, Derived(source))
                    new = True
    return new


def _is_unknown(flow: Calls, callee: Place) -> bool:
    found = flow.solver.at(callee)
    return not found or any(isinstance(item, External) and flow.library.function(item.name) is None for item in found)


def _held_by_containers(flow: Calls) -> dict[Container, Sources]:
    """The things in each container, and in the containers in it."""
    inside: dict[Container, tuple[Sources, list[Container]]] = {}
    for place in flow.solver.places():
        if isinstance(place, tuple) and place[0] == "elements":
            items = flow.solver.at(place)
            things = {item: None for item in items if isinstance(item, Thing)}
            inside[place[1]] = things, [item for item in items if isinstance(item, Container)]
    held = {container: things for container, (things, _) in inside.items()}
    for _ in range(DEEPEST_NESTING):
        held = {
            container: {**things, **{thing: None for inner in inners for thing in held.get(inner, ())}}
            for container, (things, inners) in inside.items()
        }
    return {container: things for container, things in held.items() if things}


def _sources(flow: Calls, arguments: Iterable[Place], held: dict[Container, Sources]) -> Sources:
    found: Sources = {}
    for place in arguments:
        for item in flow.solver.at(place):
            if isinstance(item, Thing):
                found[item] = None
            elif isinstance(item, Derived):
                found[item.source] = None
            elif isinstance(item, Container):
                found.update(held.get(item, {}))
    return found


def _parameters(flow: Calls, arguments: Iterable[Place]) -> list[Place]:
    """The parameters of the functions among some arguments."""
    found: list[Place] = []
    for place in arguments:
        for item in flow.solver.at(place):
            function = item.function if isinstance(item, Method) else item
            if isinstance(function, Function):
                names = [*function.node.args.posonlyargs, *function.node.args.args]
                found.extend(("variable", function.scope, name.arg) for name in names)
    return found
