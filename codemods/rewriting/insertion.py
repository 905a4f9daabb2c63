"""Where emitted helper functions go in the user's file."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import groupby

import libcst as cst

from codemods.cst.comments import is_docstring
from codemods.optimizers.base import TRAIN_STATE, Support
from codemods.rewriting.lines import gap_and_comments
from codemods.rewriting.original import Original
from codemods.sources.modules import Unit
from codemods.sources.notebook import MARKER as CELL
from codemods.sources.parsing import parse

DOCSTRING = '''"""What the optimizers of this project need and optax has not."""'''

INDENT = " " * 4
"""The indentation in which helpers are written."""

WORD = re.compile(r"\w+")
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
DEFINITIONS = (*FUNCTIONS, ast.ClassDef)


def insert_support(
    module: cst.Module, sources: Sequence[str], original: Original
) -> cst.Module | None:
    """Put helper definitions after the imports that they need and ahead of their first use.

    In a file, that is behind all imports at its top; in a notebook, behind those that they need, as
    cells are run one by one. They get the file's indentation, and those that the file has already
    are left out. None if there is no such place.
    """
    new: list[cst.SimpleStatementLine | cst.BaseCompoundStatement] = []
    for source in sources:
        if not has_support(module, source):
            new += map(_spaced, _indented(source, module).body)
    if not new:
        return module
    helpers = module.with_changes(body=new).code
    texts = map(original.text_of, module.body)
    lines = [*map(_Line, map(_name, module.body), texts)]
    is_notebook = CELL.match(original.code_of(module)) is not None
    index = _place(module, lines, parse(helpers), is_notebook)
    if index is None:
        return None
    following = module.body[index:]
    spaced = [_spaced(statement) for statement in following[:1]]
    ahead, behind = module.body[:index], following[1:]
    return module.with_changes(body=[*ahead, *new, *spaced, *behind])


def module_of(supports: Iterable[Support], indent: str) -> str:
    """The text of a new module with some helpers, in this order."""
    imports: dict[str, None] = {}
    sources = []
    for support in supports:
        imports.update(dict.fromkeys(support.imports))
        source = support.source.replace(TRAIN_STATE, "train_state.TrainState")
        sources.append(source)
        if source != support.source:
            imports["from flax.training import train_state"] = None
    lines = [f"{DOCSTRING}\n"]
    for _, statements in groupby(sorted(imports, key=_place_of_import), _is_other):
        lines += (*statements, "")
    head = "\n".join(lines)
    original = Original(Unit("", head, parse(head)))
    module = original.module.with_changes(default_indent=indent)
    found = insert_support(module, sources, original)
    assert found is not None
    return f"{found.code.rstrip()}\n"


def _place_of_import(statement: str) -> tuple[bool, bool, str]:
    """Where a formatter has an import: the standard library first, then `import x`."""
    return _is_other(statement), statement.startswith("from"), statement


def _is_other(statement: str) -> bool:
    """Whether an import is of no module of the standard library."""
    package = statement.split()[1].partition(".")[0]
    return package not in sys.stdlib_module_names


def has_support(module: cst.Module, source: str) -> bool:
    """Whether the module holds these definitions already, to the letter."""
    wanted: dict[str, str] = {}
    for definition in _indented(source, module).body:
        wanted[_name(definition)] = _code(module, definition)
    present: set[str] = set()
    for statement in module.body:
        if _name(statement) in wanted:
            present.add(_code(module, statement))
    return present.issuperset(wanted.values())


def _name(statement: cst.CSTNode) -> str:
    """The name of a definition; nothing for other statements."""
    if isinstance(statement, cst.FunctionDef | cst.ClassDef):
        return statement.name.value
    return ""


def _code(
    module: cst.Module, statement: cst.SimpleStatementLine | cst.BaseCompoundStatement
) -> str:
    return module.code_for_node(statement.with_changes(leading_lines=())).strip()


def _indented(source: str, module: cst.Module) -> cst.Module:
    """The source with the module's own indentation and line ends; what hangs stays four in."""
    return _parsed(source, module.default_indent, module.default_newline)


@cache
def _parsed(source: str, indent: str, newline: str) -> cst.Module:
    config = cst.PartialParserConfig(default_indent=INDENT, default_newline=newline)
    parsed = cst.parse_module(source, config).visit(_Docstrings(indent, newline))
    return parsed.with_changes(default_indent=indent)


class _Docstrings(cst.CSTTransformer):
    """Indents and ends the lines of docstrings, which are no code."""

    def __init__(self, indent: str, newline: str) -> None:
        super().__init__()
        self.indent = indent
        self.newline = newline

    def leave_SimpleString(
        self, original_node: cst.SimpleString, updated_node: cst.SimpleString
    ) -> cst.SimpleString:
        first, *rest = updated_node.value.split("\n")
        lines = [first]
        for line in rest:
            text = line.lstrip(" ")
            depth = (len(line) - len(text)) // len(INDENT)
            lines.append(self.indent * depth + text)
        return updated_node.with_changes(value=self.newline.join(lines))


@dataclass(eq=False)
class _Line:
    """A statement of a module, or several on one line: the name if it is a definition; the text."""

    name: str
    text: str

    @cached_property
    def nodes(self) -> Sequence[ast.stmt]:
        return parse(self.text).body

    @cached_property
    def _words(self) -> set[str]:
        return {*WORD.findall(self.text)}

    def has_any(self, names: Collection[str], whole: bool) -> bool:
        """Whether it reads or binds one of some names; unless `whole`, when the module is run."""
        # the tree is needed only of what has the word
        if self._words.isdisjoint(names):
            return False
        return any(name in names for node in self.nodes for name in _names(node, whole))

    @cached_property
    def imported(self) -> Sequence[str]:
        """The names that it binds by imports."""
        if self.name or "import" not in self._words:
            return ()
        return [*_imported(self.nodes)]


def _place(
    module: cst.Module, lines: Sequence[_Line], helpers: ast.Module, is_notebook: bool
) -> int | None:
    """The index at which definitions go; None if they are needed ahead of what they need."""
    needed = {*_names(helpers)}
    # the line behind the first import of each name
    bound: dict[str, int] = {}
    for index, line in enumerate(lines):
        for name in line.imported:
            bound.setdefault(name, index + 1)
    ends = [index for name, index in bound.items() if name in needed]
    first = max(ends, default=0)
    defined = {node.name for node in helpers.body if isinstance(node, DEFINITIONS)}
    last = _first_use(lines, defined)
    if first > last:
        return None
    usual = _after_imports(module)
    if first and is_notebook:
        usual = _behind_imports(lines, first)
    return min(max(first, usual), last)


def _behind_imports(lines: Sequence[_Line], first: int) -> int:
    """The first line from `first` on that does more than to import; `first` if there is none."""
    for index in range(first, len(lines)):
        nodes = lines[index].nodes
        if not all(isinstance(node, ast.Import | ast.ImportFrom) for node in nodes):
            return index
    return first


def _first_use(lines: Sequence[_Line], names: set[str]) -> int:
    """The first line that may evaluate one of some names when the module is run.

    Definitions that use one of the names count as further names, until there are no more.
    """
    definitions = [line for line in lines if line.name]
    size = -1
    while size < len(names):
        size = len(names)
        # def make(): return sgd(0.1), where `sgd` is a helper
        names |= {line.name for line in definitions if line.has_any(names, whole=True)}
    for index, line in enumerate(lines):
        if line.has_any(names, whole=False):
            return index
    return len(lines)


def _names(root: ast.AST, whole: bool = True) -> Iterator[str]:
    """The names in some code; unless `whole`, without those in the bodies of functions."""
    pending = [root]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.Name):
            yield node.id
        # the defaults and annotations of a function are evaluated when it is defined
        later = node.body if isinstance(node, FUNCTIONS) and not whole else []
        pending += [part for part in ast.iter_child_nodes(node) if part not in later]


def _imported(nodes: Sequence[ast.stmt]) -> Iterator[str]:
    """The names that imports bind in statements of a module, or in the branches of these."""
    pending: list[ast.AST] = list(nodes)
    while pending:
        node = pending.pop()
        if isinstance(node, ast.Import | ast.ImportFrom):
            for alias in node.names:
                # import jax.numpy binds `jax`
                yield alias.asname or alias.name.partition(".")[0]
        elif not isinstance(node, (*DEFINITIONS, ast.expr)):
            pending += ast.iter_child_nodes(node)


def _after_imports(module: cst.Module) -> int:
    """Behind the last import of the run at the top, with guarded ones and plain assignments."""
    index = 0
    for number, statement in enumerate(module.body):
        inside: Sequence[cst.CSTNode] = (statement,)
        # try: import jax
        if isinstance(statement, cst.Try | cst.If):
            inside = statement.body.body
        has_import = any(map(_is_import, inside))
        if has_import or is_docstring(statement):
            index = number + 1
        elif not isinstance(statement, cst.SimpleStatementLine):
            break
    return index


def _is_import(statement: cst.CSTNode) -> bool:
    match statement:
        case cst.SimpleStatementLine(body=[cst.Import() | cst.ImportFrom(), *_]):
            return True
    return False


def _spaced(statement: cst.CSTNodeT) -> cst.CSTNodeT:
    """The statement with at least two blank lines above, its comments kept."""
    gap, comments = gap_and_comments(statement)
    blank = cst.EmptyLine(indent=False)
    missing = [blank] * (2 - len(gap))
    return statement.with_changes(leading_lines=[*missing, *gap, *comments])
