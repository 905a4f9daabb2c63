"""The functions for other programs.

LibCST is imported when there is something to rewrite, JAX when there is something to compare.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from codemods.model import Options, Site, Source

if TYPE_CHECKING:
    from optim2optax.parity.judging.comparison import Comparison
    from optim2optax.parity.judging.movement import PyTree


@dataclass(frozen=True)
class Rewritten:
    """The result for a program: its new source, and every legacy site in it.

    The source is the same as the old one if nothing was rewritten.
    """

    source: str
    sites: tuple[Site, ...]


def rewrite(
    source: str, options: Options | None = None, *, filename: str = "<string>"
) -> Rewritten:
    r"""Rewrite a program that uses `flax.optim` to optax.

    None of it is run, and no file is read or written. Optimizers are followed through this one
    program. For the files of a project, which are better seen together, there is
    `codemods.migrate`.

    Args:
        source: the program, or a notebook as it stands in its file.
        options: as on the command line.
        filename: what messages call it. A name that ends in `.ipynb` says that it is a notebook.

    Returns:
        The new source, and the sites with their status: rewritten, suppressed or unresolved.

    Raises:
        SyntaxError: if the source cannot be read as Python.
        RuntimeError: if this tool fails on it.

    Example:
        >>> from optim2optax import Options, rewrite
        >>> source = "from flax import optim\n\noptimizer_def = optim.Momentum(0.1)\n"
        >>> rewritten = rewrite(source, Options(form="chain"))
        >>> print(rewritten.source, end="")
        import optax
        <BLANKLINE>
        optimizer_def = optax.chain(optax.trace(decay=0.9), optax.scale_by_learning_rate(0.1))
        >>> [(site.code, site.line, site.status) for site in rewritten.sites]
        [('FO101', 1, 'rewritten'), ('FO102', 3, 'rewritten')]
    """
    import io
    import tokenize

    from optim2optax.rewriting import concern

    encoding, _ = tokenize.detect_encoding(io.BytesIO(source.encode()).readline)
    encoding = encoding.removesuffix("-sig")  # a mark in the text is encoded with it
    content = source.encode(encoding)
    options = options or Options()
    if not concern([content], options):
        return Rewritten(source, ())
    from codemods import migrate

    [result] = migrate([Source(filename, content)], options)
    if result.error is not None and result.tracebacks:
        raise RuntimeError("\n".join((result.error, *result.tracebacks)))
    if result.error is not None:
        raise SyntaxError(f"{filename}: {result.error}")
    return Rewritten(result.after.decode(encoding), result.sites)


def compare(
    old: object,
    new: object,
    *,
    steps: int = 120,
    seed: int = 0,
    params: PyTree = None,
    learning_rate: Callable[[int], Any] | None = None,
) -> Comparison:
    """Tell whether two optimizers are the same function.

    Both get the same gradients, and float64 decides. An optimizer is an
    `optax.GradientTransformation`, an `OptimizerDef` of the old `flax.optim`, or the source text of
    either, in which the packages are called `optax` and `optim`; `jax`, `jnp` and `np` are known
    too. A text is evaluated: it has to be one that you trust.

    Args:
        old: one optimizer; errors are measured in relation to how far it moves each leaf.
        new: the other one.
        steps: how many updates; fewer than 100 let small mistakes pass.
        seed: of the parameters and gradients.
        params: a tree of arrays to start from, instead of parameters of every rank, shaped and
            named as models have them. The old `WeightNorm` takes no scalars, and so needs some.
        learning_rate: gives the rate of each step, counted from 0. A legacy optimizer gets it with
            every `apply_gradient`; one of optax as its injected hyperparameter, if it has one, and
            is taken to have a schedule of its own if not.

    Returns:
        The comparison. Its `verdict` is "identical" (the same bits), "equivalent" (the same
        function, up to rounding), "nothing_proven" (fewer than 10 steps, or nothing moved;
        `remarks` say which) or "different"; then `first_difference` has the first step, the leaf,
        the index and both values. `error` is the largest float64 error over movement of any leaf,
        and `drift` the same in float32, None if float64 tells enough.

    Raises:
        ModuleNotFoundError: if the extra `parity` is not installed.
        LegacyWheelError: if a source text is given, and the wheel of Flax 0.5.3, which has
            `flax.optim`, cannot be found or fetched.
        TypeError: if one of the two is not an optimizer.
        ValueError: if a source text cannot be evaluated by itself.

    Example:
        >>> import optax
        >>> from optim2optax import compare
        >>> optimizer = optax.rmsprop(0.01, decay=0.9, eps_in_sqrt=False)
        >>> compare("optim.RMSProp(0.01)", optimizer).verdict.value
        'equivalent'
        >>> comparison = compare("optim.RMSProp(0.01)", optax.rmsprop(0.01))
        >>> comparison.verdict.value
        'different'
        >>> comparison.first_difference.step, comparison.first_difference.leaf
        (0, 'tiny/kernel')
    """
    try:
        from optim2optax.parity.optimizer.evaluating import evaluate_text
        from optim2optax.parity.optimizer.same_function import compare_transformations
    except ModuleNotFoundError as error:
        from optim2optax.wording import command_to_install

        reason = (
            f"optim2optax.compare needs {error.name}: {command_to_install('parity')}"
        )
        raise ModuleNotFoundError(reason, name=error.name) from error
    if isinstance(old, str):
        old = evaluate_text(old)
    if isinstance(new, str):
        new = evaluate_text(new)
    return compare_transformations(old, new, steps, seed, params, learning_rate)
