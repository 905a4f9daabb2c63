"""Which files of a program must be analysed: those that optimizers get to.

The start are the files that speak of optimizers. A file that is not analysed is to the analysis as
a package that nobody can read. What it is given, what it may return, and who in it may use what is
defined here shows whether it is needed. That goes on until no more file is needed.
"""

from __future__ import annotations

import ast
import gc
import math
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from functools import cached_property
from itertools import chain
from pathlib import PurePosixPath

from codemods.analysis.closed_world import ClosedWorld
from codemods.analysis.facts import Facts
from codemods.analysis.legacy import legacy_name
from codemods.analysis.queries import Beyond, WhyBeyond
from codemods.flow.constraints import LAZY, TooDeepError
from codemods.flow.containers import arguments
from codemods.flow.holders import holders, unwrapped
from codemods.flow.objects import (
    Class,
    Container,
    External,
    Function,
    Instance,
    LegacyObject,
    Method,
    Module,
    Object,
    Partial,
    Place,
)
from codemods.flow.scopes import Scope
from codemods.flow.solver import EntangledError
from codemods.sources.modules import Layout, Unit, file_of
from codemods.sources.relevance import CREATING, TELLING, Graph, Relevance
from codemods.sources.text import Codes

Wanted = dict[str, dict[LegacyObject, None]]
"""Files, each with the objects because of which it is needed."""

Tells = dict[str, tuple[bool, bool]]
"""Whether a file reads attributes that optimizers have, and whether it calls `create`."""

ANY_NAME = r"\bimport[ \t(]*\*|\b(?:getattr|vars|attrgetter|methodcaller)\(|__dict__"
"""Code that may read a variable of a module without naming it."""

MOST = 0.5
"""A program of which a larger part speaks of optimizers, or is beside that, is analysed as a whole.

To choose files would take longer.
"""

SMALL, PLAIN = 1_000_000, 100_000
"""So is one with fewer characters, so that rules know all its values, if it has fewer facts."""


class Slice:
    """Takes in the files of a program, as many as are needed.

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
        aside: Collection[str] = (),
    ) -> None:
        """Analyse a program.

        Args:
          texts: the text of each of its files.
          read: parses a file; None if that cannot be done.
          relevance: what the texts tell of the files.
          named: the legacy classes that the project names in quotes.
          budget: the number of facts beyond which no more files are taken in.
          aside: the files that are not to be taken in.

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
        self._aside = frozenset(aside)
        self._layout = Layout(texts)
        self._tells: Tells = {}
        self._beyond: tuple[Collection[str], float] = ((), 0)
        """The files that were beyond the budget last, and how much that was."""
        start = {*relevance.speaking, *relevance.beside}
        length = sum(map(len, texts.values()))
        begun = sum(len(texts[path]) for path in start if path in texts)
        facts = None
        if begun > MOST * length:
            facts = self._taking(texts)
        elif length < SMALL:
            facts = self._taking(texts, min(self._left, PLAIN))
        # files that cannot be taken in matter only if an optimizer gets to them
        if facts is None or self._closed:
            facts = self._grown(relevance.speaking, relevance.beside)
        self.facts = facts

    def _grown(self, speaking: Collection[str], beside: Collection[str]) -> Facts:
        """The facts once all needed files are taken in, as far as the budget allows."""
        facts: Facts | None
        facts = self._begun(speaking, beside)
        self.left_out = {*speaking} - self.units.keys() - self._closed
        wanted = self._wanted(facts)
        beyond: set[str] = set()
        least = facts.flow.solver.facts
        while new := self._by_length(wanted.keys() - beyond - self._closed):
            # with more files there are no fewer facts
            if least > self._left:
                break
            facts = None  # two sets of facts at once would take too much memory
            gc.collect()
            facts = self._taking({*self.units, *new})
            if facts is None:  # the smaller half may be within the budget
                beyond.update(new[len(new) // 2 :])
            else:
                wanted = self._wanted(facts)
                least = facts.flow.solver.facts
        if facts is None:
            facts = self._taking(self.units, math.inf, with_packages=False)
            assert facts is not None  # these files were within the budget before
        facts.beyond = {
            obj: Beyond(path, self._why(path))
            for path, objects in wanted.items()
            for obj in objects
            if path in self._texts
        }
        return facts

    @property
    def _closed(self) -> AbstractSet[str]:
        """The files that cannot be taken in."""
        return self.too_deep | self._aside

    def _why(self, path: str) -> WhyBeyond:
        if path in self._aside:
            return "aside"
        return "too deep" if path in self.too_deep else "budget"

    def _by_length(self, paths: Iterable[str]) -> list[str]:
        """Paths in the order of the lengths of their texts, without those that are not Python."""
        read = [path for path in paths if path in self._texts]
        return sorted(read, key=lambda path: len(self._texts[path]))

    def _wanted(self, facts: Facts) -> Wanted:
        """The files that are needed and were not taken in."""
        return Frontier(facts, self._graphs[1], self._tells).wanted()

    def _begun(self, speaking: Collection[str], beside: Collection[str]) -> Facts:
        """The facts of the files that speak of optimizers, and of as much around as is possible.

        If the budget is not even enough for these alone, the smaller half of them is taken, or the
        smaller half of that.
        """
        budget = self._left
        facts = self._taking({*speaking, *beside})
        paths = self._by_length(speaking)
        with_packages = True
        while facts is None and paths:
            self._left = budget
            facts = self._taking(paths, with_packages=with_packages)
            if not with_packages:
                paths = paths[: len(paths) // 2]
            with_packages = False
        if facts is None:
            raise EntangledError
        return facts

    def _taking(
        self,
        paths: Iterable[str],
        most: float | None = None,
        *,
        with_packages: bool = True,
    ) -> Facts | None:
        """The facts with these files, the packages around them, and the files that these run.

        None if that is beyond the budget.
        """
        found = self._parsed({*paths}, with_packages)
        others = self._texts.without(found)
        most = self._left if most is None else most
        if (found.keys(), most) == self._beyond:
            # fewer were asked for, but they come out the same
            return None
        units = [found[path] for path in self._texts if path in found]
        try:
            facts = Facts(units, self._named, others, self._graphs, most)
        except EntangledError:
            # attempts come to an end, and something is left for fewer files
            self._left -= most // 2
            self._beyond = found.keys(), most
            return None
        except TooDeepError as error:
            self.too_deep.update(unit.path for unit in error.units)
            return self._taking(paths, most, with_packages=with_packages)
        self._left -= facts.flow.solver.facts
        self.units = found
        return facts

    def _parsed(self, wanted: set[str], with_packages: bool) -> dict[str, Unit]:
        """Some files, the packages around them, and the files that these run."""
        found: dict[str, Unit] = {}
        pending = [path for path in self._texts if path in wanted]
        while pending:
            path = pending.pop()
            if path in found or path not in self._texts or path in self._closed:
                continue
            unit = self.units.get(path) or self._read(path)
            # it is not Python, and cannot be analysed
            if unit is None:
                self._texts = self._texts.without((path,))
                continue
            found[path] = unit
            packages = PurePosixPath(path).parents if with_packages else ()
            pending += [str(folder / "__init__.py") for folder in packages]
            pending += self._layout.run_by(path, unit.code)
        return found


class Frontier:
    """Finds the files that are needed beside those that are analysed.

    Args:
      facts: what is known.
      importers: for each file those that import it.
      tells: what was found in texts before; what is found now is added.
    """

    def __init__(self, facts: Facts, importers: Graph, tells: Tells) -> None:
        self.facts = facts
        self._tells = tells
        self.texts = facts.others
        self.flow = facts.flow
        self.world = facts.of(ClosedWorld)
        self.importers = importers
        self._parts: dict[ast.expr, frozenset[ast.expr]] = {}
        self._expressions: dict[int, frozenset[ast.expr]] = {}
        self.contents = self.flow.derivation.contents
        for place in self.flow.solver.places():
            self.contents.watch(place)
        self.contents.update(self.flow.solver.places())

    def wanted(self) -> Wanted:
        """The files that may use a legacy object, or show what an object is that may be one."""
        found: Wanted = defaultdict(dict)
        if not self.texts:
            return found
        for path, objects in (
            *self._given(),
            *self._bases(),
            *self._origins(),
            *self._users(),
            *self._readers(),
        ):
            if path in self.texts:
                found[path].update(dict.fromkeys(objects))
        return found

    def _given(self) -> Iterator[tuple[str, list[LegacyObject]]]:
        """The arguments of functions of such files, and what is assigned to their objects."""
        for site in self.flow.derivation.sites():
            # needed.train(optimizer)
            objects = self._taken_or_carried(arguments(site))
            if objects and isinstance(site.node, ast.Call):
                for path in self._files([site.node.func]):
                    yield path, objects
        for store in self.flow.derivation.stores():
            # needed.CONFIG.optimizer = optimizer
            objects = self._taken_or_carried([store.source])
            if objects:
                for path in self._files([store.node.value]):
                    yield path, objects

    def _bases(self) -> Iterator[tuple[str, list[LegacyObject]]]:
        """The bases of classes that hold or take objects."""
        for cls in self.flow.reading.classes:
            objects = self._of_class[cls]
            # class Trainer(library.Trainer), with `self.optimizer`
            for base in self.flow.ancestry(cls) if objects else ():
                path = file_of(base.name) if isinstance(base, External) else None
                if path is not None:
                    yield path, objects

    def _origins(self) -> Iterator[tuple[str, list[LegacyObject]]]:
        """The files from which what may be a legacy object comes, but is not proven to be one."""
        found: dict[LegacyObject, list[ast.expr]] = defaultdict(list)
        # state = library.restore(); state.optimizer.target
        for node in self.flow.places:
            for obj in self.facts.legacy_objects(node):
                if obj.evidence != "proven":
                    found[obj].append(node)
        for obj, nodes in found.items():
            for path in self._files(nodes):
                yield path, [obj]

    def _users(self) -> Iterator[tuple[str, list[LegacyObject]]]:
        """The files that import a file and name what holds, takes or returns objects there."""
        for unit in self.facts.project.units:
            users = [path for path in self.importers[unit.path] if path in self.texts]
            if not users:
                continue
            offered = self._offered_by(unit)
            if not offered:
                continue
            names = rf"\b(?:{'|'.join(map(re.escape, offered))})\b"
            # a module with a `__getattr__` has variables of any name
            named = re.compile(rf"{names}|{ANY_NAME}" if LAZY not in offered else "")
            objects = [*dict.fromkeys(chain.from_iterable(offered.values()))]
            for path in users:
                if named.search(self.texts[path]):
                    yield path, objects

    def _offered_by(self, unit: Unit) -> dict[str, list[LegacyObject]]:
        """The variables of a module that hold, take, return or use objects, or a legacy name.

        Who calls what uses an optimizer gives it the values of which the optimizer is made.
        """
        scope = self.flow.modules[unit]
        found = {
            name: [*self._of_variable(scope, name), *self._used_by(scope, name)]
            for name in scope.names
        }
        return {
            name: objects
            for name, objects in found.items()
            if objects or self._is_legacy(scope, name)
        }

    def _readers(self) -> Iterator[tuple[str, list[LegacyObject]]]:
        """The files that read attributes of optimizers, if any optimizer may come back there.

        That is one that is lost in view, or any where a text is run as code.
        """
        running = self.facts.running_text
        unaccounted = [
            *self.world.unaccounted,
            *(obj for obj in self._everything if obj.unit in running),
        ]
        if not unaccounted:
            return
        creating = any(obj.kind == "definition" for obj in unaccounted)
        for path in self.texts:
            if path not in self._tells:
                text = self.texts[path]
                reads, creates = TELLING.search(text), CREATING.search(text)
                self._tells[path] = (reads is not None, creates is not None)
            has_reads, has_creates = self._tells[path]
            if has_reads or (creating and has_creates):
                yield path, unaccounted

    # What is where

    def _objects(self, places: Iterable[Place]) -> Iterator[Object]:
        for place in places:
            yield from self.flow.solver.at(place)

    def _legacy_objects_at(self, places: Iterable[Place]) -> list[LegacyObject]:
        """The objects at some places, without those for which only an attribute speaks.

        What these are, their origins show.
        """
        sources = self.flow.derivation.sources
        objects = dict.fromkeys(
            obj for token in self.contents.at(places) for obj in sources(token)
        )
        return [obj for obj in objects if obj.evidence != "likely"]

    def _taken_or_carried(self, places: Collection[Place]) -> list[LegacyObject]:
        """The legacy objects at some places, and those that the objects there take or return."""
        return [
            *self._legacy_objects_at(places),
            *self._carried_by(self._objects(places)),
        ]

    def _carried_by(self, items: Iterable[Object]) -> Iterator[LegacyObject]:
        """The legacy objects that objects take or return when called, or that are in them."""
        for item in items:
            match item:
                case Function():
                    yield from self._of_function[item]
                case Class():
                    yield from self._of_class[item]
                case Instance(cls=cls):
                    yield from self._of_class[cls]
                case Method(owner=owner, function=function):
                    yield from self._carried_by(
                        [owner] if function is None else [owner, function]
                    )
                case Partial(function=function):
                    yield from self._carried_by([function])

    @cached_property
    def _of_function(self) -> dict[Function, list[LegacyObject]]:
        """What each function takes, returns, or hands to a function that it is given."""
        return {
            function: self._of(function) for function in self.flow.reading.functions
        }

    def _of(self, function: Function) -> list[LegacyObject]:
        parameters = function.node.args
        extra = [
            one for one in (parameters.vararg, parameters.kwarg) if one is not None
        ]
        named = (
            *parameters.posonlyargs,
            *parameters.args,
            *parameters.kwonlyargs,
            *extra,
        )
        places = [("variable", function.scope, one.arg) for one in named]
        objects = self._legacy_objects_at([*places, ("return", function.node)])
        return [*objects, *self._handed.get(function.node, ())]

    @cached_property
    def _handed(self) -> dict[ast.AST, list[LegacyObject]]:
        """By function the arguments of calls of its parameters: `def f(g): g(optimizer)`."""
        found: dict[ast.AST, list[LegacyObject]] = defaultdict(list)
        for site, callee in self.flow.derivation.sites().items():
            objects = self._legacy_objects_at(arguments(site))
            for root in self.flow.derivation.roots.of(callee) if objects else ():
                match root:
                    case ("variable", Scope(node=node), _):
                        found[node] += objects
        return found

    @cached_property
    def _of_class(self) -> dict[Class, list[LegacyObject]]:
        """What the instances of each class hold, and its methods take or return."""
        found: dict[Class, list[LegacyObject]] = {}
        for cls in self.flow.reading.classes:
            members = (("variable", cls.scope, name) for name in cls.scope.names)
            methods = [
                item for item in self._objects(members) if isinstance(item, Function)
            ]
            objects = self._legacy_objects_at(self.flow.field_places(cls))
            for method in methods:
                objects += self._of_function[method]
            found[cls] = objects
        return found

    def _of_variable(self, scope: Scope, name: str) -> list[LegacyObject]:
        """What a variable of a module holds, or what the object in it takes and returns."""
        place = ("variable", scope, name)
        found = self._taken_or_carried([place])
        # from package import training, of which `training.optimizer` is read
        for item in self.flow.solver.at(place):
            if isinstance(item, Module) and item.unit is not None:
                found += self._of_module[item.unit]
        return found

    def _used_by(self, scope: Scope, name: str) -> Iterator[LegacyObject]:
        """What the function in a variable uses, or one that the object there holds or returns."""
        for item in self.flow.solver.at(("variable", scope, name)):
            match unwrapped(item):
                case Function(node=node) | Class(node=node) if node in self._used:
                    yield from self._used[node]
                case held if held in self._using:
                    yield from self._used_anywhere

    @cached_property
    def _using(self) -> set[Object]:
        """The functions and classes that use objects, and all that hold one or return it."""

        def uses(item: Object) -> bool:
            return isinstance(item, Function | Class) and item.node in self._used

        def parts(item: Object) -> Iterable[Place]:
            match item:
                case Container():
                    return [("elements", item)]
                case Instance(cls=cls):
                    return self.flow.field_places(cls)
                case Function(node=node):
                    return [("return", node)]
            return ()

        return holders(self.flow.solver, uses, parts)

    @cached_property
    def _used(self) -> Mapping[ast.AST, dict[LegacyObject, None]]:
        """The objects that each function uses, itself or by functions that it calls."""
        found: dict[ast.AST, dict[LegacyObject, None]] = defaultdict(dict)
        pending: list[tuple[ast.AST, LegacyObject]] = []

        def add(scope: Scope | None, objects: Iterable[LegacyObject]) -> None:
            # what is within a function is its own, too
            while scope is not None:
                for obj in objects:
                    if obj not in found[scope.node]:
                        found[scope.node][obj] = None
                        pending.append((scope.node, obj))
                scope = scope.parent

        for node in self.flow.places:
            objects = self.facts.legacy_objects(node, "definition", "optimizer")
            known = [obj for obj in objects if obj.evidence != "likely"]
            if known:
                add(self.flow.reading.scopes.get(node), known)
        while pending:
            function, obj = pending.pop()
            for site, _ in self.flow.entered.get(function, ()):
                add(site.scope or self.flow.reading.scopes.get(site.node), [obj])
        return found

    @cached_property
    def _used_anywhere(self) -> dict[LegacyObject, None]:
        return dict.fromkeys(chain.from_iterable(self._used.values()))

    def _is_legacy(self, scope: Scope, name: str) -> bool:
        items = self.flow.solver.at(("variable", scope, name))
        names = (item.name for item in items if isinstance(item, External))
        return any(legacy_name(full_name) is not None for full_name in names)

    @cached_property
    def _of_module(self) -> dict[Unit, list[LegacyObject]]:
        """What the variables of each module hold, except for other modules."""
        found = {}
        for unit, scope in self.flow.modules.items():
            places = [("variable", scope, name) for name in scope.names]
            found[unit] = self._taken_or_carried(places)
        return found

    @cached_property
    def _everything(self) -> dict[LegacyObject, None]:
        return {
            obj: None
            for node in self.flow.places
            for obj in self.facts.legacy_objects(node)
        }

    def _files(self, nodes: Iterable[ast.expr]) -> Iterator[str]:
        """The files without which it is not known what some expressions are.

        What a call returns may be made of its arguments.
        """
        pending = list({*nodes}.union(*map(self._roots, nodes)))
        seen = set(pending)
        while pending:
            current = pending.pop()
            for path in map(file_of, self.flow.derivation.roots.names(current)):
                if path is not None:
                    yield path
            new = self._made_of(current) - seen
            pending += new
            seen |= new

    def _made_of(self, node: ast.expr) -> frozenset[ast.expr]:
        """The arguments of a call, and the expressions from which they come."""
        if node not in self._parts:
            given = node.args if isinstance(node, ast.Call) else []
            self._parts[node] = frozenset(given).union(*map(self._roots, given))
        return self._parts[node]

    def _roots(self, node: ast.expr) -> frozenset[ast.expr]:
        """The expressions from which all objects at an expression come."""
        roots = self.flow.derivation.roots.of(self.flow.places.get(node))
        if id(roots) not in self._expressions:
            expressions = (root for root in roots if isinstance(root, ast.expr))
            self._expressions[id(roots)] = frozenset(expressions)
        return self._expressions[id(roots)]
