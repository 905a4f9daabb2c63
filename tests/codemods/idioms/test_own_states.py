"""Dataclasses around an optimizer that become train states. First, those that stay what they are, each with the reason."""

import pytest

from codemods import Options
from tests.codemods.programs import OPTAX_ALONE, migrated, program, project, result_of

HEAD = """
        from typing import Any

        import flax
        import jax
        from flax import optim

"""
STATE = """
        @flax.struct.dataclass
        class TrainState:
            step: int
            optimizer: optim.Optimizer
            stats: Any

        def create(params):
            return TrainState(step=0, optimizer=optim.Adam(0.1).create(params), stats={})

        def train_step(state, grads, stats):
            optimizer = state.optimizer.apply_gradient(grads)
            return state.replace(step=state.step + 1, optimizer=optimizer, stats=stats)

        def train(params, grads, stats):
            state = create(params)
            state = train_step(state, grads, stats)
            return state.optimizer.target
"""
COUNT = "`step` of `TrainState` does not always count the steps of its optimizer"

METHOD = (
    "\n            def params_of(self):\n                return self.optimizer.target\n"
)
OTHER = "        class Other(TrainState):\n            more: int = 0\n\n"
FIELD, END = "            stats: Any\n", "            return state.optimizer.target\n"
CHECK = "\n            def __post_init__(self):\n                check(self.stats)\n"
LISTING = "\n            def fields(self):\n                return vars(self)\n"
PATTERN = "            match state:\n                case TrainState(optimizer=found):\n                    print(found)\n"
PARTIAL = "from functools import partial\n            partial"
READER = "\n        def read(any_state):\n            return any_state.optimizer\n"

KEPT = {
    "a step that begins elsewhere": ("TrainState(step=0,", "TrainState(step=7,", "its step does not begin at 0"),
    "a step that goes by two": ("step=state.step + 1", "step=state.step + 2", f"{COUNT} (train.py:19)"),
    "the optimizer is handed on":
        ("return state.optimizer.target", "return state.optimizer", "its optimizer is handed on at train.py:24"),
    "the optimizer comes from another state": (
        "optimizer = state.optimizer.apply_gradient",
        "optimizer = create(state.optimizer.target).optimizer.apply_gradient",
        f"{COUNT} (train.py:19)",
    ),
    "the gradients change in between": (
        "            return state.replace(step=state.step + 1, optimizer=optimizer",
        "            grads = None\n            return state.replace(step=state.step + 1, optimizer=optimizer",
        "the gradients at train.py:18 would be others where the state changes",
    ),
    **{
        f"something that is called `{name}`": (
            FIELD, f"{FIELD}            {name}: Any = None\n",
            "it has a field or method that a `TrainState` has, too",
        )
        for name in ("tx", "opt_state", "apply_fn", "create", "apply_gradients", "replace", "cls", "grads")
    },
    "a special method": (FIELD, FIELD + CHECK, "it has a special method"),
    "a method that hands the object on": (FIELD, FIELD + LISTING, "its own methods use the optimizer"),
    **{
        f"its fields are asked for: {asked}": (
            END, f"            print({asked})\n{END}",
            "its fields may be listed or read by name at train.py:24",
        )
        for asked in (
            *("getattr(state, 'optimizer')", "getattr(state, stats)", "vars(state)", "state.__dict__", "inspect(state)"),
            *("dataclasses.asdict(state)", "dataclasses.astuple(state)", "dataclasses.fields(TrainState)"),
            *("operator.attrgetter('optimizer')(state)", "pickle.dumps(state)", "queue.put(state)"),
            *("flax.serialization.to_bytes(flax.serialization.to_state_dict(state))", "TrainState.__annotations__"),
        )
    },
    **{
        f"a checkpoint is asked for the optimizer: {asked}": (
            END, f"            raw = flax.serialization.msgpack_restore(grads)\n            print({asked})\n{END}",
            "the optimizer of a checkpoint is read by its key at train.py:25",
        )
        for asked in ("raw['optimizer']", "raw['states'].pop('optimizer', None)", "'optimizer' in raw")
    },
    "a pattern takes it apart": (END, PATTERN + END, "its fields may be listed or read by name at train.py:25"),
    "methods of its own use the optimizer":
        ("            stats: Any\n", "            stats: Any\n" + METHOD, "its own methods use the optimizer"),
    "another class derives from it":
        ("        def create(params):", OTHER + "        def create(params):", "another class derives from it"),
    "another decorator": (
        "@flax.struct.dataclass", "@registered\n        @flax.struct.dataclass",
        "it is no plain `flax.struct.dataclass`",
    ),
    "a state of which nobody knows whose it is": (
        "            return state.optimizer.target\n", "            return state.optimizer.target\n" + READER,
        "nothing tells of which class the object is at train.py:27",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("old", "new", "why"), KEPT.values(), ids=KEPT)
def test_what_stays_a_dataclass(old: str, new: str, why: str) -> None:
    assert STATE.count(old) == 1
    result = result_of(HEAD + STATE.replace(old, new))

    assert {site.status for site in result.sites} == {"rewritten"}
    assert b"class TrainState:" in result.after
    assert b"optimizer: train_state.TrainState" in result.after
    notes = {site.note for site in result.sites} - {""}
    assert notes == {f"The class around it does not become a train state: {why}."}


NAMED_STEP = {
    "a method": "            def step(self):\n                return 3\n",
    "a property": "            @property\n            def step(self):\n                return 3\n",
    "a constant": "            step = 3\n",
}


@pytest.mark.parametrize("step", NAMED_STEP.values(), ids=NAMED_STEP)
def test_a_step_that_counts_nothing_keeps_the_dataclass(step: str) -> None:
    result = result_of(HEAD + UNCOUNTED.replace(FIELD, f"{FIELD}\n{step}"))

    assert b"class TrainState:" in result.after
    told = "a field or method that a `TrainState` has, too"
    assert any(told in site.note for site in result.sites)


UNCOUNTED = (
    STATE.replace("            step: int\n", "")
    .replace("step=0, ", "")
    .replace("step=state.step + 1, ", "")
)
MADE = "            return TrainState(optimizer=optim.Adam(0.1).create(params), stats={})\n"
NAMED = MADE.replace("optim.Adam(0.1).create(params)", "optimizer")
ONE = "            optimizer = optim.Adam(0.1).create(params)\n"
STEPPED = "            optimizer = state.optimizer.apply_gradient(grads)\n"
RATED = STEPPED.replace("grads)", "grads, learning_rate=stats)")
CHANGED = "            return state.replace(optimizer=optimizer, stats=stats)\n"
READ = "            print(old.target)\n"

KEPT_UNCOUNTED = {
    "fields that are unpacked where it changes":
        (CHANGED, CHANGED.replace("stats=stats", "**stats"), "its fields are unpacked at train.py:18"),
    "a new optimizer for an old state": (
        CHANGED, "            fresh = optim.Adam(0.1).create(grads)\n" + CHANGED.replace("=optimizer", "=fresh"),
        "its optimizer comes from elsewhere at train.py:19",
    ),
    "the step of another state with a name": (
        STEPPED, "            fresh = create(grads)\n" + STEPPED.replace("state.", "fresh."),
        "its optimizer comes from another state at train.py:19",
    ),
    "a new optimizer for two states": (
        CHANGED, CHANGED.replace("return", "other =") + CHANGED.replace("return ", "return other, "),
        "its new optimizer is used by itself before train.py:18",
    ),
    "the optimizer gets other parameters": (
        STEPPED, "            optimizer = state.optimizer.replace(target=stats)\n",
        "its optimizer is used by itself at train.py:17",
    ),
    "a rate that is another by then": (
        STEPPED, RATED + "            stats = {}\n",
        "the learning rate at train.py:17 would be another where the state changes",
    ),
    "fields that are unpacked where it is made":
        (MADE, MADE.replace("stats={}", "**{'stats': {}}"), "its fields are unpacked at train.py:14"),
    "made of all that a function gives": (
        MADE, "            return TrainState(*fields(optim.Adam(0.1), params))\n",
        "its fields are unpacked at train.py:14",
    ),
    "made without an optimizer":
        (MADE, MADE + "\n        EMPTY = TrainState(stats={})\n", "it has no optimizer at train.py:16"),
    "made for one of two": (
        MADE,
        "            if stats_only:\n    " + ONE.replace("(params)", "({})") + "            else:\n    " + ONE + NAMED,
        "its optimizers are made for different parameters before train.py:18",
    ),
    "the optimizer is used before the state is made":
        (MADE, ONE + "            show(optimizer)\n" + NAMED, "its optimizer is used by itself before train.py:16"),
    "another function makes the optimizer": (
        MADE,
        MADE.replace("optim.Adam(0.1).create", "make") + "\n        def make(params):\n"
         + ONE + "            return optimizer\n",
        "its optimizer is not made plainly before train.py:14",
    ),
    "another function makes the state": (
        MADE, ONE + "            return around(optimizer)\n\n        def around(optimizer):\n" + NAMED,
        "its optimizer is not made plainly before train.py:18",
    ),
    "an optimizer or none": (
        MADE, ONE.replace("(params)\n", "(params) if params else None\n") + NAMED,
        "its optimizer is not made plainly before train.py:15",
    ),
    "an optimizer of some parameters": (
        MADE, MADE.replace("(params)", "(params, focus=optim.ModelParamTraversal(lambda path, _: 'bias' in path))"),
        "its optimizer is not made plainly at train.py:14",
    ),
    "parameters that are an array":
        (MADE, MADE.replace("(params)", "(jax.numpy.zeros(3))"), "its parameters are an array or a dataclass"),
    "the definition is read": (
        CHANGED, "            show(state.optimizer.optimizer_def)\n" + CHANGED,
        "its optimizer is used by itself at train.py:18",
    ),
    "an optimizer beside it": (
        MADE,
        MADE + "\n        def both(params):\n" + ONE + "            for one in (optimizer, create(params).optimizer):\n"
         + "                show(one.target)\n",
        "what its optimizer meets at train.py:17 is no part of it",
    ),
    "a variable in a block of its own": (
        CHANGED, "            if stats:\n                old = state.optimizer\n" + READ + CHANGED,
        "a variable for its optimizer cannot be taken away",
    ),
    "a variable for its optimizer is handed on": (
        CHANGED, "            old = state.optimizer\n" + READ.replace(".target", ".target, old") + CHANGED,
        "its optimizer is handed on at train.py:19",
    ),
    "a variable for the optimizer of an older state": (
        CHANGED, "            old = state.optimizer\n            state = create(grads)\n" + READ + CHANGED,
        "its optimizer is used by itself at train.py:20",
    ),
    "something else of which nobody knows what it is": (
        CHANGED, "            show(stats.replace(optimizer='adam'))\n" + CHANGED,
        "nothing tells of which class the object is at train.py:18",
    ),
}  # fmt: skip


@pytest.mark.parametrize(
    ("old", "new", "why"), KEPT_UNCOUNTED.values(), ids=KEPT_UNCOUNTED
)
def test_what_stays_a_dataclass_without_a_step(old: str, new: str, why: str) -> None:
    assert UNCOUNTED.count(old) == 1
    result = result_of(HEAD + UNCOUNTED.replace(old, new))

    assert {site.status for site in result.sites} == {"rewritten"}
    assert b"optimizer: train_state.TrainState" in result.after
    told = f"The class around it does not become a train state: {why}."
    assert told in {site.note for site in result.sites}


def test_a_rate_is_set_where_the_state_changes() -> None:
    after = migrated(HEAD + UNCOUNTED.replace(STEPPED, RATED))
    assert (
        "tree_set(state.opt_state, learning_rate=stats)\n"
        "    ).apply_gradients(grads=grads, stats=stats)\n"
    ) in after


LEFT = {
    "a hyperparameter": (STEPPED.replace("grads)", "grads, beta1=0.5)"), "FO910"),
    "two arguments": (STEPPED.replace("grads)", "grads, stats)"), "FO905"),
    "no rate": (STEPPED.replace("grads)", "grads, learning_rate=None)"), "FO910"),
    "what an optimizer never had": (STEPPED + "            show(state.optimizer.compute_gradient)\n", "FO917"),
}  # fmt: skip


@pytest.mark.parametrize(("step", "code"), LEFT.values(), ids=LEFT)
def test_what_has_no_counterpart_has_none_in_a_state_of_its_own(
    step: str, code: str
) -> None:
    result = result_of(HEAD + UNCOUNTED.replace(STEPPED, step), OPTAX_ALONE)

    assert result.after == result.before
    assert {site.code for site in result.sites} - {"FO901", "FO911"} == {code}


def test_several_optimizers_stay_fields() -> None:
    result = migrated("""
        from flax import optim, struct

        @struct.dataclass
        class Agents:
            actor: optim.Optimizer
            critic: optim.Optimizer

        def create(actor, critic):
            return Agents(actor=optim.Adam(0.1).create(actor), critic=optim.Adam(0.1).create(critic))
        """)
    assert "class Agents:" in result
    assert "actor: train_state.TrainState" in result


def test_a_dataclass_becomes_a_train_state() -> None:
    result = migrated(HEAD + STATE)

    assert result == program("""
        from typing import Any

        import jax
        import optax
        from flax.training import train_state


        class TrainState(train_state.TrainState):
            stats: Any

        def create(params):
            return TrainState.create(apply_fn=None, params=params, tx=optax.adam(0.1), stats={})

        def train_step(state, grads, stats):
            return state.apply_gradients(grads=grads, stats=stats)

        def train(params, grads, stats):
            state = create(params)
            state = train_step(state, grads, stats)
            return state.params
        """)
    assert migrated(result) == result


def test_a_partial_call_of_another_package_changes_no_state() -> None:
    call = f"{PARTIAL}(solver.solve, **grads)()"
    solving = f"            import solver\n            {call}\n"
    after = migrated(HEAD + STATE.replace(END, solving + END))
    assert "class TrainState(train_state.TrainState):\n    stats: Any\n" in after
    assert "return state.apply_gradients(grads=grads, stats=stats)\n" in after


def test_variables_for_the_optimizer_go() -> None:
    result = migrated("""
        import jax
        from flax import optim, struct

        @struct.dataclass
        class State:
            '''What is trained.'''

            optimizer: optim.Optimizer

            alpha: float = 0.0

        def create(params, quick):
            definition = optim.Momentum(0.1) if quick else optim.Adam(0.1)
            optimizer = definition.create(params)
            return State(optimizer=optimizer, alpha=1.0)

        def train_step(state, batch, rate):
            optimizer = state.optimizer
            grads = jax.grad(loss_fn)(optimizer.target, batch, optimizer.state.step)
            new_optimizer = optimizer.apply_gradient(grads, learning_rate=rate)
            new_state = state.replace(optimizer=new_optimizer)
            return new_state

        def train(params, batches, rates):
            state = create(params, True)
            for batch, rate in zip(batches, rates):
                state = train_step(state, batch, rate)
            return state
        """)

    head, _, steps = result.partition("alpha=1.0)\n\n")
    fields = "    '''What is trained.'''\n\n    alpha: float = 0.0\n"
    assert f"class State(train_state.TrainState):\n{fields}" in head
    made = "    return State.create(apply_fn=None, params=params, tx=definition, "
    assert head.endswith(made)
    assert steps == program("""
        def train_step(state, batch, rate):
            grads = jax.grad(loss_fn)(state.params, batch, state.step)
            opt_state = optax.tree_utils.tree_set(state.opt_state, learning_rate=rate)
            new_state = state.replace(opt_state=opt_state).apply_gradients(grads=grads)
            return new_state

        def train(params, batches, rates):
            state = create(params, True)
            for batch, rate in zip(batches, rates):
                state = train_step(state, batch, rate)
            return state
        """)


def test_the_order_of_what_acts_stays() -> None:
    step = "state.optimizer.apply_gradient(next(grads))"
    fields = (
        "optimizer=optimizer, stats=stats",
        f"stats=next(stats), optimizer={step}",
    )
    result = result_of(HEAD + STATE.replace(STEPPED, "").replace(*fields))

    assert b"class TrainState:" in result.after
    told = "the order of what train.py:18 computes matters"
    assert any(told in site.note for site in result.sites)


def test_a_state_crosses_files() -> None:
    files = project(
        {
            "states": """
                from flax import optim, struct

                @struct.dataclass
                class State:
                    optimizer: optim.Optimizer
                """,
            "train": """
                from flax import jax_utils, optim
                from flax.training import checkpoints
                import jax
                import states

                def step(state: states.State, grads):
                    return state.replace(optimizer=state.optimizer.apply_gradient(grads))

                def train(params, grads):
                    state = states.State(optim.Adam(0.1).create(params))
                    state = checkpoints.restore_checkpoint("runs", state)
                    state = jax_utils.replicate(state)
                    state = jax.pmap(step)(state, grads)
                    return jax_utils.unreplicate(state).optimizer.target
                """,
        }
    )

    states, train = (files[name].after.decode() for name in ("states", "train"))
    assert "class State(train_state.TrainState):\n    pass\n" in states
    assert "state = states.State.create(" in train
    assert "return state.apply_gradients(grads=grads)" in train
    assert "return jax_utils.unreplicate(state).params" in train


COPY = """
    from flax import optim, struct
    from flax.training import checkpoints

    @struct.dataclass
    class State:
        optimizer: optim.Optimizer
"""
TRAIN = """
    def step(state, grads):
        return state.replace(optimizer=state.optimizer.apply_gradient(grads))

    state = step(State(optim.Adam(0.1).create(params)), grads)
    checkpoints.save_checkpoint("runs", state, 1)
"""
EVALUATE = """
    def params_of(optimizer):
        return optimizer.target

    state = State(optim.Adam(0.0).create(params))
    state = checkpoints.restore_checkpoint("runs", state)
    params_of(state.optimizer)
"""


@pytest.mark.parametrize(
    ("evaluates", "kept"), [("evaluate", 2), ("other/evaluate", 1)]
)
def test_copies_of_a_class_in_a_folder_become_train_states_together(
    evaluates: str, kept: int
) -> None:
    """What one script stores another loads: with other keys, nothing would be loaded."""
    files = project({"train": COPY + TRAIN, evaluates: COPY + EVALUATE})
    classes = [file.after.count(b"@struct.dataclass") for file in files.values()]
    assert sum(classes) == kept


def test_on_demand_it_stays_a_dataclass() -> None:
    assert "class TrainState:" in migrated(HEAD + STATE, Options(ignore=("FO214",)))
