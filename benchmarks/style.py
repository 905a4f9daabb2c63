"""How dense the code of packages is, side by side.

`python -m benchmarks.style codemods optim2optax pyupgrade=/models/pyupgrade` prints a line for each package, a folder of Python
files. They are indicators: what they are for is that a reader gets along.

- nodes: the nodes of the syntax tree for each line of code, the median of all files. A line of code has a token on it that is
  neither a comment nor part of a docstring; the contexts of names (`ast.Load`) are not counted.
- long: the share of lines of more than 100 characters.
- comments: the comments in a hundred lines.
- function: the lines of code of a function or method, without its docstring and the functions within it; the median, and what
  nine of ten do not exceed.
"""

from __future__ import annotations

import ast
import io
import statistics
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import click

LONGEST = 100
SILENT = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
    tokenize.ENCODING,
}
FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass
class Style:
    """What is counted of a package."""

    lines: int = 0
    long: int = 0
    comments: int = 0
    densities: list[float] = field(default_factory=list)
    functions: list[int] = field(default_factory=list)

    def take_in(self, text: str) -> None:
        """Count the lines, nodes, comments and functions of a file."""
        tree = ast.parse(text)
        tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
        code = code_lines(tokens) - docstring_lines(tree)
        lines = text.splitlines()
        self.lines += len(lines)
        self.long += sum(len(line) > LONGEST for line in lines)
        self.comments += sum(token.type == tokenize.COMMENT for token in tokens)
        if code:
            self.densities.append(nodes_of(tree) / len(code))
        for node in ast.walk(tree):
            if isinstance(node, FunctionNode):
                self.functions.append(len(own_lines(node) & code))


def nodes_of(tree: ast.Module) -> int:
    """The number of nodes of a tree, those apart that every name has beside it."""
    return sum(not isinstance(node, ast.expr_context) for node in ast.walk(tree))


def code_lines(tokens: list[tokenize.TokenInfo]) -> set[int]:
    """The numbers of the lines on which something stands that is no comment."""
    return {
        number
        for token in tokens
        if token.type not in SILENT
        for number in range(token.start[0], token.end[0] + 1)
    }


def docstring_lines(tree: ast.Module) -> set[int]:
    """The numbers of the lines of docstrings, those of attributes included."""
    found: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            found.update(lines_of(node))
    return found


def own_lines(function: FunctionNode) -> set[int]:
    """The numbers of the lines of a function, without those of functions within it."""
    inner = (
        node
        for node in ast.walk(function)
        if isinstance(node, FunctionNode) and node is not function
    )
    return set(lines_of(function)).difference(*map(lines_of, inner))


def lines_of(node: ast.stmt) -> range:
    """The numbers of the lines of a statement."""
    return range(node.lineno, (node.end_lineno or node.lineno) + 1)


def files_of(package: Path) -> Iterator[str]:
    """The texts of a package's Python files, tests apart."""
    for path in sorted(package.rglob("*.py")):
        inner = path.relative_to(package)
        if not {"test", "tests"} & {*inner.parts} and not inner.name.endswith(
            "_test.py"
        ):
            yield path.read_text("utf-8")


@click.command()
@click.argument("packages", nargs=-1, required=True, metavar="[NAME=]FOLDER…")
def main(packages: tuple[str, ...]) -> None:
    """Print how dense the code of packages is."""
    click.echo(
        f"{'':16}{'lines':>8}{'nodes':>8}{'long':>8}{'comments':>10}{'function':>12}"
    )
    for package in packages:
        name, _, folder = package.rpartition("=")
        style = Style()
        for text in files_of(Path(folder)):
            style.take_in(text)
        ninth = statistics.quantiles(style.functions, n=10)[-1]
        sizes = f"{statistics.median(style.functions):.0f} / {ninth:.0f}"
        click.echo(
            f"{name or Path(folder).name:16}{style.lines:8}{statistics.median(style.densities):8.1f}"
            f"{style.long / style.lines:8.1%}{100 * style.comments / style.lines:10.1f}{sizes:>12}"
        )


if __name__ == "__main__":
    main()
