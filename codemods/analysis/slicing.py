"""Which files of a program must be analysed: those that speak of optimizers, and all that an optimizer gets to from there.

A file of which nothing is known is to the analysis what a package is that nobody can read. What is given to it, what it may give
back, and who in it may use what is defined here shows which of them to take in, until none is left to ask for.
"""

from __future__ import annotations

import ast
import gc
import math
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import cached_property
from pathlib import PurePosixPath

from codemods.analysis.closed_world import ClosedWorld
from codemods.analysis.facts import Facts
from codemods.analysis.legacy import legacy_name
from codemods.analysis.queries import Beyond
from codemods.flow.constraints import LAZY, TooDeepError
from codemods.flow.containers import arguments
from codemods.flow.objects import (
    Class,
    External,
    Function,
    Instance,
    Method,
    Module,
    Object,
    Partial,
    Place,
    Thing,
)
from codemods.flow.scopes import Scope
from codemods.flow.solver import EntangledError
from codemods.sources.modules import Layout, Unit, file_of
from codemods.sources.relevance import CREATING, TELLING, Graph, Relevance
from codemods.sources.text import Codes

Wanted = dict[str, dict[Thing, None]]
"""Files, each with the things because of which it matters."""

Tells = dict[str, tuple[bool, bool]]
"""Whether a file reads attributes as optimizers have, and whether it creates something as definitions do."""

ANY_NAME = r"\bimport[ \t(]*\*|\b(?:getattr|vars|attrgetter|methodcaller)\(|__dict__"
"""What may get a variable of a module without naming it."""

SMALL = 1_000_000
"""A program of so many characters is analysed sooner than it is found out what of it matters."""


class Slice:
    """Takes in the files of a program, as many as matter.

    Attributes:
      units: the files that were taken in, by path.
      facts: what is known of them.
      too_deep: the files that nest too deeply to be analysed.
      left_out: the files that speak of optimizers and are beyond the budget.
    """

    def __init__(
        self,
        texts: Codes,
        read: Callable[[str], Unit | None],
        relevance: Relevance,
        named: Iterable[str],
        budget: int,
    ) -> None:
        """Analyse a program.

        Args:
          texts: the text of each of its files.
          read: parses a file; None if that cannot be done.
          relevance: what the texts tell of the files.
          named: the legacy classes that the project names in quotes.
          budget: the number of facts beyond which no more files are taken in.

        Raises:
          EntangledError: if even the smallest of those that speak of optimizers is beyond it.
        """
        self.units: dict[str, Unit] = {}
        self.too_deep: set[str] = set()
        self.left_out: set[str] = set()
        self._texts = texts
        self._read = read
        self._graphs = relevance.imports, relevance.importers
        self._named = frozenset(named)
        self._left: float = budget
        self._layout = Layout(texts)
        self._tells: Tells = {}
        is_small = sum(map(len, texts.values())) < SMALL
        facts = self._taking(texts, budget // 2) if is_small else None
        if facts is None or self.too_deep:
            facts = self._grown(relevance.speaking, relevance.beside)
        self.facts = facts

    def _grown(self, speaking: Collection[str], beside: Collection[str]) -> Facts:
        """What is known once all files are taken in that matter, as far as the budget goes."""
        known: Facts | None
        known = self._begun(speaking, beside)
        self.left_out = {*speaking} - self.units.keys() - self.too_deep
        wanted = self._wanted(known)
        beyond: set[str] = set()
        while new := sorted(
            wanted.keys() - beyond - self.too_deep, key=lambda path: len(self._texts[path])
        ):
            known = None  # what was found out of fewer files would lie beside what is found out now
            gc.collect()
            known = self._taking({*self.units, *new})
            if known is None:  # the smaller half may be within the budget
                beyond.update(new[len(new) // 2 :])
            else:
                wanted = self._wanted(known)
        facts = known
        if facts is None:
            facts = self._taking(self.units, math.inf, with_packages=False)
            assert facts is not None  # these files were within the budget before
        facts.beyond = {
            thing: Beyond(path, path in self.too_deep)
            for path, things in wanted.items()
            for thing in things
        }
        return facts

    def _wanted(self, facts: Facts) -> Wanted:
        """The files that matter to what is known, and are not among those that were taken in."""
        return Frontier(facts, self._graphs[1], self._tells).wanted()

    def _begun(self, speaking: Collection[str], beside: Collection[str]) -> Facts:
        """What is known of the files that speak of optimizers, with as much around them as the budget is enough for.

        If it is not even enough for these alone, it is what is known of the smaller half, or of the smaller half of that.
        """
        budget = self._left
        facts = self._taking({*speaking, *beside})
        paths = sorted(
            (path for path in speaking if path in self._texts),
            key=lambda path: len(self._texts[path]),
        )
        with_packages = True
        while facts is None and paths:
            self._left = budget
            facts = self._taking(paths, with_packages=with_packages)
            paths = paths if with_packages else paths[: len(paths) // 2]
            with_packages = False
        if facts is None:
            raise EntangledError
        return facts

    def _taking(
        self, paths: Iterable[str], most: float | None = None, *, with_packages: bool = True
    ) -> Facts | None:
        """What is known with these files, those of the packages around, and what these run; None if that is beyond the budget."""
        found: dict[str, Unit] = {}
        wanted = {*paths}
        pending = [path for path in self._texts if path in wanted]
        while pending:
            path = pending.pop()
            if path in found or path not in self._texts or path in self.too_deep:
                continue
            unit = self.units.get(path) or self._read(path)
            if unit is None:
                self._texts = self._texts.without((path,))
                continue
            found[path] = unit
            packages = PurePosixPath(path).parents if with_packages else ()
            pending += [str(folder / "__init__.py") for folder in packages]
            pending += self._layout.run_by(path, unit.code)
        others = self._texts.without(found)
        most = self._left if most is None else most
        try:
            facts = Facts(
                [found[path] for path in self._texts if path in found],
                self._named,
                others,
                self._graphs,
                most,
            )
        except EntangledError:
            self._left -= (
                most // 2
            )  # so that what is tried in vain comes to an end, and something is left for less
            return None
        except TooDeepError as error:
            self.too_deep.update(unit.path for unit in error.units)
            return self._taking(paths, most, with_packages=with_packages)
        self._left -= facts.flow.solver.facts
        self.units = found
        return facts


class Frontier:
    """Finds the files that matter to what is known of others.

    Args:
      facts: what is known.
      importers: for each file those that import it.
      tells: what has been found of texts before, and is found now.
    """

    def __init__(self, facts: Facts, importers: Graph, tells: Tells) -> None:
        self.facts = facts
        self._tells = tells
        self.texts = facts.others
        self.flow = facts.flow
        self.world = ClosedWorld(facts)
        self.importers = importers
        self._parts: dict[ast.expr, frozenset[ast.expr]] = {}
        self._expressions: dict[int, frozenset[ast.expr]] = {}
        self.contents = self.flow.derivation.contents
        for place in self.flow.solver.places():
            self.contents.watch(place)
        self.contents.update(self.flow.solver.places())

    def wanted(self) -> Wanted:
        """The files that may do something with a thing, or tell what something is that may be one."""
        found: Wanted = defaultdict(dict)
        if not self.texts:
            return found
        for path, things in (
            *self._given(),
            *self._bases(),
            *self._origins(),
            *self._users(),
            *self._readers(),
        ):
            if path in self.texts:
                found[path].update(dict.fromkeys(things))
        return found

    def _given(self) -> Iterator[tuple[str, list[Thing]]]:
        """What functions of such files are given, and what is put into objects of theirs."""
        for site in self.flow.derivation.sites():
            things = [
                *self._things_at(arguments(site)),
                *self._carried_by(self._objects(arguments(site))),
            ]
            if things and isinstance(site.node, ast.Call):
                for path in self._files([site.node.func]):
                    yield path, things
        for store in self.flow.derivation.stores():
            things = [
                *self._things_at([store.source]),
                *self._carried_by(self._objects([store.source])),
            ]
            if things:
                for path in self._files([store.node.value]):
                    yield path, things

    def _bases(self) -> Iterator[tuple[str, list[Thing]]]:
        """The bases of classes that hold or take things."""
        for cls in self.flow.reading.classes:
            things = self._of_class[cls]
            for base in self.flow.ancestry(cls) if things else ():
                if isinstance(base, External) and (path := file_of(base.name)) is not None:
                    yield path, things

    def _origins(self) -> Iterator[tuple[str, list[Thing]]]:
        """Where what may be a thing comes from, if that is not proven."""
        found: dict[Thing, list[ast.expr]] = defaultdict(list)
        for node in self.flow.places:
            for thing in self.facts.things(node):
                if thing.evidence != "proven":
                    found[thing].append(node)
        for thing, nodes in found.items():
            for path in self._files(nodes):
                yield path, [thing]

    def _users(self) -> Iterator[tuple[str, list[Thing]]]:
        """The files that may use what is defined here: they import this file, and name what holds, takes or gives things."""
        for unit in self.facts.project.units:
            users = [path for path in self.importers[unit.path] if path in self.texts]
            scope = self.flow.modules[unit]
            found = {name: self._of_variable(scope, name) for name in scope.names} if users else {}
            held = {
                name: things
                for name, things in found.items()
                if things or self._is_legacy(scope, name)
            }
            if not held:
                continue
            names = rf"\b(?:{'|'.join(map(re.escape, held))})\b"
            named = re.compile(rf"{names}|{ANY_NAME}" if LAZY not in held else "")
            for path in users:
                if named.search(self.texts[path]):
                    yield path, [thing for things in held.values() for thing in things]

    def _readers(self) -> Iterator[tuple[str, list[Thing]]]:
        """The files that read such attributes as optimizers have, if any is lost on its way, or where text is run as code."""
        lost = [
            *self.world.lost,
            *(thing for thing in self._everything if thing.unit in self.facts.running_text),
        ]
        creating = any(thing.kind == "definition" for thing in lost)
        for path in self.texts if lost else ():
            if path not in self._tells:
                text = self.texts[path]
                self._tells[path] = (
                    TELLING.search(text) is not None,
                    CREATING.search(text) is not None,
                )
            reads, creates = self._tells[path]
            if reads or (creating and creates):
                yield path, lost

    # What is where

    def _objects(self, places: Iterable[Place]) -> Iterator[Object]:
        for place in places:
            yield from self.flow.solver.at(place)

    def _things_at(self, places: Iterable[Place]) -> list[Thing]:
        """The things at some places, less those of which nothing but an attribute tells: what they are, their origins show."""
        sources = self.flow.derivation.sources
        things = dict.fromkeys(
            thing for token in self.contents.at(places) for thing in sources(token)
        )
        return [thing for thing in things if thing.evidence != "likely"]

    def _carried_by(self, items: Iterable[Object]) -> Iterator[Thing]:
        """The things that objects take or give when they are called, or that are found in them."""
        for item in items:
            match item:
                case Function():
                    yield from self._of_function[item]
                case Class():
                    yield from self._of_class[item]
                case Instance(cls=cls):
                    yield from self._of_class[cls]
                case Method(owner=owner, function=function):
                    yield from self._carried_by([owner] if function is None else [owner, function])
                case Partial(function=function):
                    yield from self._carried_by([function])

    @cached_property
    def _of_function(self) -> dict[Function, list[Thing]]:
        """What each function takes, gives, or hands to a function that it is given."""
        return {function: self._of(function) for function in self.flow.reading.functions}

    def _of(self, function: Function) -> list[Thing]:
        arguments = function.node.args
        extra = [one for one in (arguments.vararg, arguments.kwarg) if one is not None]
        named = (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, *extra)
        places = [("variable", function.scope, one.arg) for one in named]
        return [
            *self._things_at([*places, ("return", function.node)]),
            *self._handed.get(function.node, ()),
        ]

    @cached_property
    def _handed(self) -> dict[ast.AST, list[Thing]]:
        """What is handed to a parameter of each function, which is called."""
        found: dict[ast.AST, list[Thing]] = defaultdict(list)
        for site, callee in self.flow.derivation.sites().items():
            things = self._things_at(arguments(site))
            for root in self.flow.derivation.roots.of(callee) if things else ():
                match root:
                    case ("variable", Scope(node=node), _):
                        found[node] += things
        return found

    @cached_property
    def _of_class(self) -> dict[Class, list[Thing]]:
        """What the instances of each class hold, and its methods take or give."""
        found = {}
        for cls in self.flow.reading.classes:
            members = (("variable", cls.scope, name) for name in cls.scope.names)
            methods = [item for item in self._objects(members) if isinstance(item, Function)]
            fields = self._things_at(self.flow.field_places(cls))
            found[cls] = [
                *fields,
                *(thing for method in methods for thing in self._of_function[method]),
            ]
        return found

    def _of_variable(self, scope: Scope, name: str) -> list[Thing]:
        """What a variable of a module holds, or what it holds takes and gives."""
        place = ("variable", scope, name)
        found: list[Thing] = [*self._things_at([place]), *self._carried_by(self._objects([place]))]
        for item in self.flow.solver.at(place):
            if isinstance(item, Module) and item.unit is not None:
                found += self._of_module[item.unit]
        return found

    def _is_legacy(self, scope: Scope, name: str) -> bool:
        items = self.flow.solver.at(("variable", scope, name))
        return any(
            isinstance(item, External) and legacy_name(item.name) is not None for item in items
        )

    @cached_property
    def _of_module(self) -> dict[Unit, list[Thing]]:
        """What the variables of each module hold, other modules apart."""
        found = {}
        for unit, scope in self.flow.modules.items():
            places = [("variable", scope, name) for name in scope.names]
            found[unit] = [*self._things_at(places), *self._carried_by(self._objects(places))]
        return found

    @cached_property
    def _everything(self) -> dict[Thing, None]:
        return {thing: None for node in self.flow.places for thing in self.facts.things(node)}

    def _files(self, nodes: Iterable[ast.expr]) -> Iterator[str]:
        """The files without which it is not known what some expressions are.

        What a call gives may be made of what it is given.
        """
        pending = list({*nodes}.union(*map(self._roots, nodes)))
        seen = set(pending)
        while pending:
            current = pending.pop()
            yield from (
                path
                for path in map(file_of, self.flow.derivation.roots.names(current))
                if path is not None
            )
            new = self._made_of(current) - seen
            pending += new
            seen |= new

    def _made_of(self, node: ast.expr) -> frozenset[ast.expr]:
        """What a call is given, and where that comes from."""
        if node not in self._parts:
            given = node.args if isinstance(node, ast.Call) else []
            self._parts[node] = frozenset(given).union(*map(self._roots, given))
        return self._parts[node]

    def _roots(self, node: ast.expr) -> frozenset[ast.expr]:
        """The expressions from which all that an expression may be comes."""
        roots = self.flow.derivation.roots.of(self.flow.places.get(node))
        if id(roots) not in self._expressions:
            self._expressions[id(roots)] = frozenset(
                root for root in roots if isinstance(root, ast.expr)
            )
        return self._expressions[id(roots)]
