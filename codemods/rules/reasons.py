"""The reasons for which a site is left as it is (FO9)."""

from __future__ import annotations

from codemods.containment import INTERNAL
from codemods.rules import reason

sibling = reason(
    "FO901",
    "another site of the same optimizer cannot be migrated",
    """An optimizer migrates whole or not at all: a program in which half of the sites speak to a
    `TrainState` and half to a `flax.optim.Optimizer` would not run. The message names the site that
    stands in the way.""",
)
no_learning_rate = reason(
    "FO902",
    "no learning rate is known",
    """A `flax.optim` definition may be made without a learning rate if every `apply_gradient` gives
    one. optax needs it at construction: `optax.adam(None)` does not fail but takes steps uphill. So
    a definition without a rate is not migrated where a step in view gives none either.""",
)
run_time_class = reason(
    "FO903",
    "the optimizer class is chosen at run time",
    """A function with the old arguments takes the place of a class that is only called (FO103).
    This one is compared, asked for an attribute, given to code that is not in view, or made of
    other optimizers, so that no function can.""",
)
unpacked_arguments = reason(
    "FO904",
    "arguments are unpacked",
    """What `**kwargs` holds is not known where a step is taken, or where an optimizer is made of
    others. An optimizer of its own that is made with `**kwargs` becomes a function with the old
    arguments (FO102).""",
)
arguments = reason(
    "FO905",
    "these arguments have no counterpart",
    """`flax.optim` would have rejected these arguments, or optax has nothing that equals them.""",
)
state = reason(
    "FO906",
    "the optimizer's state is used directly",
    """The state of a `flax.optim` optimizer is `OptimizerState(step, param_states)`; that of a
    `TrainState` is what the optax transformation made, laid out differently. Only `.state.step` has
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
    (FO701). One that has a `create`, `state_dict`, `init` or `update` of its own has to be written
    anew.""",
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
    """`apply_gradient(…, learning_rate=…)` becomes an injected hyperparameter that is set before
    the step. That is the same only if each step sets it, if it is the learning rate alone, and if
    the place that makes the optimizer is in view.""",
)
name_needed = reason(
    "FO911",
    "a legacy name is still needed or exported",
    """The import stays because something that was not migrated uses it, because the module exports
    the name, or because it is used in a way that is not understood.""",
)
likely = reason(
    "FO912",
    "this is only likely to be a legacy optimizer",
    """Nothing shows where the object comes from: only its name and the attribute read from it
    suggest an optimizer. Or `apply_gradient` is called on it, and a class of the same program has
    a method of that name for such a call.""",
)
deprecated_method = reason(
    "FO913",
    "a deprecated method without counterpart",
    """`Optimizer.replicate()` also made every later step average gradients over devices, and one
    copy be stored. Both are written out where that is plain to do (FO602): with one axis, at all
    steps, and where no replicated optimizer meets a checkpoint.""",
)
left_by_choice = reason(
    "FO914",
    "a site of the same optimizer is suppressed or not selected",
    """A comment, `--select` or `--ignore` excludes a site. The optimizer that it belongs to is left
    whole.""",
)
traversal = reason(
    "FO915",
    "a traversal is used beyond choosing parameters",
    """A `ModelParamTraversal` in a MultiOptimizer becomes a predicate over paths. One that is also
    iterated, updated or composed cannot.""",
)
create_as_value = reason(
    "FO916",
    "a method is used as a value",
    """The method of a definition or optimizer is passed on instead of being called, so the call
    cannot be rewritten where it stands.""",
)
statement_form = reason(
    "FO917",
    "this statement has a form that cannot be rewritten",
    """An import in the one-line body of another statement cannot be exchanged there.
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
    "something else was removed, and has no other name",
    """With `--modernize`, what JAX, Flax and NumPy have only renamed is renamed. This has to be
    written anew.""",
)
unproven = reason(
    "FO920",
    "parity is not proven",
    """`--verify` evaluates each optimizer, old and new, before anything is written. This one
    differed, or could not be evaluated outside of its program.""",
)
unlike = reason(
    "FO924",
    "a train state cannot be used so",
    """A legacy optimizer could be pickled, and taken apart into its leaves. A `TrainState` holds
    functions, which cannot be pickled, and its leaves have other paths, stand in another order, and
    have counts of steps among them. A transformation is a tuple: where `isinstance` asks for one,
    its optimizers are left. So are optimizers that are told from train states by their type.""",
)
complex_parameters = reason(
    "FO925",
    "parameters are complex",
    """Of a complex gradient, Adam, AdaBelief, Adafactor, LAMB and RMSProp of `flax.optim` took the
    square, where optax takes the squared modulus, which is another function. The others are the
    same for complex parameters too.""",
)
internal = reason(
    INTERNAL,
    "an error within this tool",
    """An unexpected exception of this tool. It costs the place, or else the file, in which it
    happens: what has to do with that stays, and all else is migrated. The exit code is 2.""",
)
unnamed = reason(
    "FO931",
    "an optimizer is used in files that were not named",
    """Given some files, the others of their project are read, and not written. An optimizer
    migrates whole or not at all, so one that is used in other files as well stays. The message says
    which files to name, too; with `--with-related`, they are written as if they had been named.""",
)
unpointed = reason(
    "FO927",
    "an import cannot be pointed at the copy of flax.optim",
    """With `--vendor`, what cannot be migrated speaks to a copy of `flax.optim` within the project.
    Imports, dotted names and names that are whole strings are pointed at it. What gets at it
    otherwise, as `getattr(flax, "optim")` does, stays.""",
)
no_place = reason(
    "FO928",
    "there is no place for a copy of flax.optim",
    """A project has one copy, with one name: what one copy makes is nothing that another knows.
    Scripts in several folders, each of which imports what lies beside it, have no place in
    common.""",
)
unneeded_copy = reason(
    "FO929",
    "nothing needs a copy of flax.optim any more",
    """When the last optimizer has been migrated, nothing imports the copy that `--vendor` made, and
    its folder can be deleted.""",
)
out_of_view = reason(
    "FO932",
    "an optimizer goes out of view",
    """Code that is not in view, as that of another package, is given an optimizer that migrates, or
    its definition, and may keep it or give it back. What comes back is migrated where it is used as
    only an optimizer can be. All else stays as it is, and where that reads `target`, the program
    ends in an error. So it is where the keys of a state dict are read: those of a train state are
    `step`, `params` and `opt_state`. This holds nobody back: it is no site, and changes no exit
    code.""",
)
