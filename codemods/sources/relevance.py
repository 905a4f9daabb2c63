"""Which files of a project an optimizer can get to, as far as their text says.

The others are neither parsed nor analysed.
"""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import PurePosixPath

from codemods.sources.modules import Layout
from codemods.sources.prefilter import may_read, mentions_legacy, uses_jax
from codemods.vocabulary import OUTSIDE

IMPORT = re.compile(
    r"""[ \t]*(?:.*?[:;][ \t]*)??(?:
        from[ \t]+(?P<level>\.*)[ \t]*(?P<source>[\w.]*)[ \t]+
            import[ \t]*(?P<members>\([^)]*\)|(?:\\\r?\n|[^\r\n;])*)
        |import[ \t]+(?P<modules>(?:\\\r?\n|[^\r\n;])*)
    )""",
    re.VERBOSE,
)
NAMED = re.compile(r"""\b(?:import_module|__import__)\(\s*["']([\w.]+)["']""")
COMMENT = re.compile(r"#[^\r\n]*")
LOADING = re.compile(
    r"""\b(?:import_module|__import__)\((?!\s*["'][\w.]+["']\s*[,)])"""
    r"""|\b(?:runpy\.|exec\(|spec_from_file_location|load_source"""
    r"""|SourceFileLoader|entry_points|iter_entry_points"""
    r"""|__getattr__\(name|lazy_loader|_LazyModule)"""
)
"""What loads a module by a name that is computed."""

SHAPED = re.compile(
    r"\.\s*(?:target|state|optimizer_def|param_states|apply_gradient|compute_gradient)\b"
)
"""Attributes of legacy optimizers, whatever they are read from."""

CREATING = re.compile(r"\.\s*create\(")
"""A method that counts as that of a legacy definition even if its owner is unknown."""

REPLACING = re.compile(r"\breplace\([^()]*\b(?:step|state|target|optimizer)\s*=")
"""Calls that may give a state another step or optimizer."""

SMALL = 1_000_000
"""The characters of a program of which all files are asked about."""

Graph = defaultdict[str, set[str]]


class Relevance:
    """What is known of the files of a project by their texts.

    Where only some of them may change, only the programs of these matter.

    Attributes:
      paths: those of the files that matter.
      speaking: the files that name what only legacy optimizers have, or may read one, or load
        others by a computed name.
      beside: the files that are imported where legacy optimizers are named.
      imports: for each file that matters those that it imports.
      importers: and those that import it.
    """

    def __init__(
        self, texts: Mapping[str, str], writable: Collection[str] | None = None
    ) -> None:
        legacy = set[str]()
        for path, text in texts.items():
            if mentions_legacy(text.encode()):
                legacy.add(path)
        self.paths: list[str] = []
        self.speaking = legacy
        self.beside = set[str]()
        self.imports = Graph(set)
        self.importers = Graph(set)
        if not legacy:
            return
        imports, importers = import_graph(texts)
        readers = set[str]()
        for path, text in texts.items():
            if may_read(text.encode()):
                readers.add(path)
        # All that import them are their programs, with all that these import.
        above = reachable(legacy | readers, importers)
        reached = reachable(above, imports)
        loaded = _loaded(texts, reached)
        reached = reachable(reached | loaded, imports)
        if writable is not None:
            # one that cannot be read has no text
            named = {*writable}.intersection(texts)
            near = reachable(reachable(named, importers), imports)
            reached &= reachable(near | _loaded(texts, near), imports)
        self.paths = [path for path in texts if path in reached]
        loading = {path for path in reached if _loads_and_reads(texts[path])}
        self.speaking = (legacy | readers | loading) & reached
        for path in legacy & reached:
            self.beside |= imports[path]
        for path in self.paths:
            self.imports[path] = imports[path] & reached
            self.importers[path] = importers[path] & reached

    def asked_about(self, texts: Mapping[str, str]) -> set[str]:
        """Of some files, those whose expressions are looked at; the others only help to answer."""
        if sum(map(len, texts.values())) < SMALL:
            return {*texts}
        start = self.speaking | self.beside
        return {
            path
            for path, text in texts.items()
            if path in start
            or any(told.search(text) for told in (SHAPED, CREATING, REPLACING))
        }


def _loads_and_reads(text: str) -> bool:
    if LOADING.search(text) is None:
        return False
    return SHAPED.search(text) is not None


def _loaded(texts: Mapping[str, str], program: set[str]) -> set[str]:
    """The files that may be connected with a program by an import whose name is computed.

    A file that loads others so, and has attributes named as those of optimizers are, may load one
    of the program. Where a file of the program loads others so, these may be all that have such
    attributes. They use JAX, name a folder of the program, or are in one around or below.
    """
    folders = {PurePosixPath(path).parent for path in program}
    around = {outer for folder in folders for outer in (folder, *folder.parents)}
    names = {folder.name for folder in folders if folder.name}

    def is_near(path: str) -> bool:
        folder = PurePosixPath(path).parent
        if folder in around or not folders.isdisjoint(folder.parents):
            return True
        text = texts[path]
        if uses_jax(text.encode()):
            return True
        return any(name in text for name in names)

    program_loads = any(LOADING.search(texts[path]) for path in program)
    found: set[str] = set()
    for path, text in texts.items():
        # optimizer.target
        if not SHAPED.search(text):
            continue
        # importlib.import_module(name)
        may_connect = program_loads or LOADING.search(text) is not None
        if may_connect and is_near(path):
            found.add(path)
    return found


def reachable(start: Iterable[str], graph: Graph) -> set[str]:
    """The start, and all that the graph leads to from there."""
    found = set(start)
    pending = list(found)
    while pending:
        new = graph[pending.pop()] - found
        found |= new
        pending.extend(new)
    return found


def import_graph(texts: Mapping[str, str]) -> tuple[Graph, Graph]:
    """For each file the files that it imports, and those that import it."""
    layout = Layout(texts)
    imports = Graph(set)
    importers = Graph(set)
    for path, text in texts.items():
        for module in _modules(path, text, layout):
            file, _ = layout.at(module) or (None, "")
            if file is not None:
                imports[path].add(file)
                importers[file].add(path)
        # pytest imports what a test shares with those beside it
        for shared in _shared(path, texts):
            imports[path].add(shared)
            importers[shared].add(path)
        # A file that is run is like one that is imported.
        for ran in layout.run_by(path, text):
            imports[path].add(ran)
            importers[ran].add(path)
    return imports, importers


def _shared(path: str, texts: Mapping[str, str]) -> Iterator[str]:
    """The `conftest.py` of the folders around a test."""
    test = PurePosixPath(path)
    if test.name.startswith("test_") or test.name.endswith("_test.py"):
        for folder in test.parents:
            shared = str(folder / "conftest.py")
            if shared in texts:
                yield shared


def _imports(text: str) -> Iterator[re.Match[str]]:
    """The import statements.

    To match only lines with the word is many times faster.
    """
    index = text.find("import")
    end = 0
    while index >= 0:
        newline = text.rfind("\n", 0, index)
        carriage_return = text.rfind("\r", 0, index)
        line = max(newline, carriage_return) + 1
        match = IMPORT.match(text, max(line, end))
        if match is not None:
            yield match
            end = match.end()
        index = text.find("import", max(index + 6, end))


def _modules(path: str, text: str, layout: Layout) -> Iterator[str]:
    """The paths, without ending, of all that a file may import."""
    for match in _imports(text):
        if match["modules"] is not None:
            # import package.module as name, other
            listed = COMMENT.sub("", match["modules"])
            modules = re.sub(r"\bas\s+\w+", "", listed)
            for name in re.findall(r"[\w.]+", modules):
                yield from _with_packages(absolute(path, name, layout), name)
        else:
            yield from _modules_of_from(path, match, layout)
    # importlib.import_module("package.module")
    if "import_module" in text or "__import__" in text:
        for match in NAMED.finditer(text):
            name = match[1]
            yield from _with_packages(absolute(path, name, layout), name)


def _modules_of_from(path: str, match: re.Match[str], layout: Layout) -> Iterator[str]:
    """`from package import name, other`: the names may be modules."""
    name = match["source"]
    # from ..models import vit
    if match["level"]:
        level = len(match["level"])
        relative = layout.relative(path, level, name)
        sources: tuple[str, ...] = (relative,)
    else:
        sources = absolute(path, name, layout)
    yield from _with_packages(sources, name)
    if sources:
        members = COMMENT.sub("", match["members"])
        for member in re.findall(r"\w+", members):
            for source in sources:
                # from . import vit, in a file that is in no folder
                yield member if source == "." else f"{source}/{member}"


def absolute(path: str, name: str, layout: Layout) -> tuple[str, ...]:
    """The paths, without ending, that an absolute import in a file may mean.

    `jax` is the library, also below a folder of that name.
    """
    root = name.partition(".")[0]
    # a script's neighbour may be called as a module of the standard library
    is_outside = root in OUTSIDE and root not in sys.stdlib_module_names
    return () if is_outside else layout.absolute(path, name)


def _with_packages(paths: Iterable[str], name: str) -> Iterator[str]:
    """The paths of a module, and those of the packages around it that its dotted name names."""
    for path in paths:
        around = path
        # `package/module.py`, `package`: as many as the name has parts.
        for _ in name.split("."):
            if not around:
                break
            yield around
            around = around.rpartition("/")[0]
