"""The reasons for which a site is left as it is (FO9)."""

from __future__ import annotations

from codemods.containment import INTERNAL
from codemods.rules import reason

sibling = reason(
    "FO901",
    "another site of the same optimizer cannot be migrated",
    """An optimizer migrates whole or not at all: a program in which half of the sites use a
    `TrainState` and half a `flax.optim.Optimizer` would not run. The message names the site that
    cannot be migrated.""",
)
no_learning_rate = reason(
    "FO902",
    "no learning rate is known",
    """A `flax.optim` definition may be made without a learning rate if every `apply_gradient` gives
    one. optax needs it at construction: `optax.adam(None)` does not fail, but its steps go uphill.
    So a definition without a rate is not migrated if a step in view gives none either.""",
)
run_time_class = reason(
    "FO903",
    "the optimizer class is chosen at run time",
    """A class that is only called is replaced by a function with the old arguments (FO103). A
    function cannot replace this one, because it is compared, has an attribute read, goes to code
    out of view, or is made of other optimizers.""",
)
unpacked_arguments = reason(
    "FO904",
    "arguments are unpacked",
    """The contents of `**kwargs` are unknown where a step is taken, or where an optimizer is made
    of others. A single optimizer that is made with `**kwargs` becomes a function with the old
    arguments (FO102).""",
)
arguments = reason(
    "FO905",
    "these arguments have no counterpart",
    """`flax.optim` would have rejected these arguments, or optax has no equivalent for them.""",
)
state = reason(
    "FO906",
    "the optimizer's state is used directly",
    """The state of a `flax.optim` optimizer is `OptimizerState(step, param_states)`; the state of a
    `TrainState` comes from the optax transformation and has another layout. Only `.state.step` has
    a counterpart that is always right: `.step`.""",
)
definition_internals = reason(
    "FO907",
    "the optimizer definition's internals are used",
    """`hyper_params`, `optimizer_def` and the methods of a definition have no counterpart on a
    gradient transformation, which is a pair of functions.""",
)
custom_definition = reason(
    "FO908",
    "a custom OptimizerDef",
    """A subclass of `OptimizerDef`, or of one of the optimizers, keeps its methods under a new base
    (FO701). A class with its own `create`, `state_dict`, `init` or `update` has to be rewritten by
    hand.""",
)
conflict = reason(
    "FO909",
    "something that is no legacy optimizer reaches this place too",
    """The same expression may hold a `flax.optim` object and something else that has such an
    attribute. Rewriting it would break the other.""",
)
overrides = reason(
    "FO910",
    "hyperparameters are overridden in a way that cannot be carried over",
    """The learning rate in `apply_gradient(…, learning_rate=…)` becomes an injected hyperparameter
    that is set before the step. That is the same only if each step sets it, if nothing else is
    overridden, and if the place that makes the optimizer is in view.""",
)
name_needed = reason(
    "FO911",
    "a legacy name is still needed or exported",
    """The import stays because something that was not migrated uses it, because the module exports
    the name, or because the tool does not understand how it is used.""",
)
likely = reason(
    "FO912",
    "this is only likely to be a legacy optimizer",
    """The tool cannot see where the object comes from; only its name and the attribute read from it
    suggest an optimizer. Or `apply_gradient` is called on it, and a class of the same program has a
    method of that name that accepts such a call.""",
)
deprecated_method = reason(
    "FO913",
    "a deprecated method without counterpart",
    """After `Optimizer.replicate()`, every later step also averaged gradients over devices, and
    only one copy was stored. Both are written out in simple cases (FO602): with one axis, at all
    steps, and if no replicated optimizer is stored or restored.""",
)
left_by_choice = reason(
    "FO914",
    "a site of the same optimizer is suppressed or not selected",
    """A comment, `--select` or `--ignore` excludes a site, so the whole optimizer that it belongs
    to stays.""",
)
traversal = reason(
    "FO915",
    "a traversal is used beyond choosing parameters",
    """A `ModelParamTraversal` in a MultiOptimizer becomes a predicate over paths. A traversal that
    is also iterated, updated or composed cannot.""",
)
create_as_value = reason(
    "FO916",
    "a method is used as a value, or an attribute is looked up by its name",
    """The method of a definition or optimizer is passed on instead of being called, so no call can
    be rewritten. Or `getattr`, `vars`, `dataclasses.replace` or a pattern of `match` asks for
    attributes by their names, and a train state has others.""",
)
statement_form = reason(
    "FO917",
    "this statement has a form that cannot be rewritten",
    """An import in the one-line body of another statement cannot be replaced there.
    `compute_gradient` and `optimize` return flat tuples where `jax.value_and_grad` returns nested
    ones; they are rewritten only as the whole right side of an assignment, with a loss function in
    view.""",
)
name_taken = reason(
    "FO918",
    "a name that the new code needs is taken",
    """The file already uses the name `optax` for something else.""",
)
failed = reason(
    "FO919",
    "the rewritten file was not valid",
    """A safety check: the rewritten text did not parse, used an undefined name, or needed one that
    is taken in the file; or LibCST cannot read the file. Nothing was changed.""",
)
removed = reason(
    "FO899",
    "something else was removed, without a replacement",
    """`--modernize` replaces names that JAX, Flax and NumPy only renamed. This one has no
    replacement, so you have to rewrite the code.""",
)
legacy_models = reason(
    "FO897",
    "models are written for flax.nn",
    """Flax 0.4.0 removed `flax.nn`, with which models were written before `flax.linen`. `--vendor`
    copies it into the project, so that the models stay as they are.""",
)
unproven = reason(
    "FO920",
    "parity is not proven",
    """`--verify` evaluates each optimizer, old and new, before anything is written. This one
    differed, or could not be evaluated outside its program.""",
)
unlike = reason(
    "FO924",
    "a train state cannot be used this way",
    """A legacy optimizer could be flattened into its leaves, and told by its type. The leaves of a
    `TrainState` have other paths, another order, and step counts among them, and all train states
    have one type.""",
)
complex_parameters = reason(
    "FO925",
    "parameters are complex",
    """For a complex gradient, Adam, AdaBelief, Adafactor, LAMB and RMSProp of `flax.optim` took the
    square, but optax takes the squared modulus, which is another function. The other optimizers are
    the same for complex parameters too.""",
)
internal = reason(
    INTERNAL,
    "an error within this tool",
    """This tool raised an unexpected exception. The place, or else the file, in which it happened
    stays, with everything that depends on it; everything else is migrated. The exit code is 2.""",
)
unnamed = reason(
    "FO931",
    "an optimizer is used in files that were not named",
    """If you give some files of a project, the others are read but not written, and so are those
    that `--exclude` leaves out. An optimizer migrates whole or not at all, so one that other files
    use too stays. The message says which files to add; with `--with-related`, they are written as
    if you had named them, unless they are excluded.""",
)
unpointed = reason(
    "FO927",
    "an import cannot be pointed at a vendored copy",
    """With `--vendor`, code that cannot be migrated uses a copy of `flax.optim` within the project,
    and models that are written for `flax.nn` use one of that. Imports, dotted names and strings
    that are a whole name are pointed at the copy. Any other access, such as `getattr(flax,
    "optim")`, stays.""",
)
no_place = reason(
    "FO928",
    "there is no place for a vendored copy",
    """A program has one copy of a package, with one name, because two copies would not recognize
    each other's objects. Its files may have no place in common, or something else is there.""",
)
out_of_view = reason(
    "FO932",
    "an optimizer goes out of view",
    """An optimizer that is migrated, or its definition, goes to code out of view, such as another
    package, which may keep it or return it. What comes back is migrated if it is used as only an
    optimizer can be. Everything else there stays as it is: if it reads `target`, the program raises
    an error. The same holds where code reads the keys of a state dict: those of a train state are
    `step`, `params` and `opt_state`. No optimizer stays because of this: it is not a site, and does
    not change the exit code.""",
)
