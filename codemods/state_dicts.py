"""The dicts that optimizers, and what holds them, are made into by `to_state_dict`, `state_dict` and `dataclasses.asdict`.

A state dict is a thing of its own that migrates with its optimizer: its keys are the names of the optimizer's parts.
"""

from __future__ import annotations

from dataclasses import replace

from codemods.flow.calls import Behaviour, Calls, CallSite, Key
from codemods.flow.objects import Container, Instance, Object, Place, Thing
from codemods.vocabulary import AS_DICT

STATE_DICT = "state_dict"
"""The kind of such a thing, and the role of a container in which each optimizer is one."""


class StateDicts:
    """Lets dicts of optimizers flow. `links` gets each with its optimizer."""

    def __init__(self, links: dict[tuple[Thing, Thing], None]) -> None:
        self.links = links
        self._known: set[Container] = set()

    def made_by(self, name: str) -> Behaviour:
        """What a function does that makes dicts: that of JAX's pytrees has the elements of a list under words, too."""

        def behaviour(flow: Calls, site: CallSite) -> None:
            for place in site.positional[:1]:
                flow.solver.watch(place, lambda item: flow.solver.add(site.result, self.of(flow, item, name)))

        return behaviour

    def of(self, flow: Calls, item: Object, name: str) -> Object:
        """What a function makes of an object."""
        match item:
            case Thing(kind="optimizer"):
                made = replace(item, kind=STATE_DICT)
                self.links[made, item] = None
                return made
            case Container(role=role) if not role.endswith(STATE_DICT):
                whole = Container(item.node, f"{role} {name} {STATE_DICT}")
                if self._is_new(whole):
                    flow.by_key(item, lambda key: self._convert(flow, ("element", item, key), whole, key, name))
                return whole
            case Instance(cls=cls) if names := flow.fields_in_order(cls):
                whole = Container(cls.node, f"{name} {STATE_DICT}")
                for field in names if self._is_new(whole) else ():
                    self._convert(flow, flow.field(cls, field), whole, field, name)
                return whole
        return item

    def _is_new(self, whole: Container) -> bool:
        is_new = whole not in self._known
        self._known.add(whole)
        return is_new

    def _convert(self, flow: Calls, place: Place, whole: Container, key: Key, name: str) -> None:
        """Let a container have the dict of what is at a place."""
        before, inside = ("before dict", whole, key), ("in dict", whole, key)
        flow.solver.connect(place, before)  # so that the watcher is told in its turn, and not within this call
        flow.solver.watch(before, lambda item: flow.solver.add(inside, self.of(flow, item, name)))
        flow.store_element(whole, key if key is None or name in AS_DICT else str(key), inside)


def flatten(flow: Calls, site: CallSite) -> None:
    """`traverse_util.flatten_dict(tree)`: of state dicts within, the paths have the keys."""
    seen: set[Object] = set()

    def arrive(item: Object) -> None:
        if isinstance(item, Container) and item not in seen:
            seen.add(item)
            flow.solver.watch(("elements", item), arrive)
        elif isinstance(item, Thing) and item.kind == STATE_DICT:
            flow.solver.add(site.result, item)

    for place in site.positional[:1]:
        flow.solver.connect(place, site.result)
        flow.solver.watch(place, arrive)
