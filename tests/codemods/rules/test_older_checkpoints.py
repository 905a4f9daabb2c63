"""Where an optimizer is created that is restored somewhere, the report says what reads checkpoints from before the migration."""

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from flax import serialization

from optim2optax.checkpoints.loading import load_legacy_checkpoint
from optim2optax.legacy import legacy_flax
from tests.codemods.programs import program, result_of
from tests.generated.verdicts import verdict

pytestmark = pytest.mark.usefixtures("legacy_wheel")

PROGRAM = """
    import flax
    from flax import optim, serialization
    from flax.training import checkpoints

    def create(params):
        return optim.Adam(0.1).create(params)

    def train(params, directory, data):
        optimizer = create(params)
        {line}
        return optimizer
    """
SILENT = (
    "checkpoints.save_checkpoint(directory, optimizer, 1)",
    "data = serialization.to_bytes(optimizer)",
    "params = serialization.from_bytes(params, data)",
    "print(checkpoints.latest_checkpoint(directory))",
    "optimizer = create(params).restore_state(optimizer.state_dict())",
    "data = {'optimizer': optimizer.state_dict()}",
)
TOLD = (
    "optimizer = checkpoints.restore_checkpoint(directory, optimizer)",
    "optimizer, epoch = checkpoints.restore_checkpoint(directory, (optimizer, 0))",
    "optimizer = serialization.from_bytes(optimizer, data)",
    "optimizer = flax.serialization.from_state_dict(optimizer, serialization.msgpack_restore(data))",
)


@pytest.mark.parametrize("line", SILENT)
def test_nothing_is_said_of_what_restores_no_optimizer(line: str) -> None:
    sites = result_of(PROGRAM.replace("{line}", line)).sites
    assert not [site.note for site in sites if "checkpoint" in site.note]


@pytest.mark.parametrize("line", TOLD)
def test_both_ways_are_offered(line: str) -> None:
    sites = result_of(PROGRAM.replace("{line}", line)).sites
    [site] = [site for site in sites if site.note]

    assert site.line == 6
    assert site.note.startswith("It is restored at train.py:10,")
    assert "`optim2optax checkpoint convert`" in site.note
    assert "`optim2optax.checkpoints.loading.load_legacy_checkpoint(" in site.note


def test_what_keeps_its_interface_is_restored_from_other_keys_too() -> None:
    result = result_of("""
        from flax import optim
        from flax.training import checkpoints

        def step(optimizer, grads, rate):
            return optimizer.apply_gradient(grads, learning_rate=rate)

        def run(params, grads, directory):
            optimizer = optim.Adam(0.1).create(params)
            optimizer = checkpoints.restore_checkpoint(directory, optimizer)
            return step(optimizer.apply_gradient(grads), grads, 0.2)
        """)
    notes = [site.note for site in result.sites if "a checkpoint" in (site.note or "")]
    assert len(notes) == 1
    assert notes[0].startswith("It is restored at train.py:9")


AGENT = """
    class Agent:
        def __init__(self, params):
            self.optimizer = optim.Adam(0.1).create(params)
            self.steps = 0

        def bundle_and_checkpoint(self):
            return {"optimizer": self.optimizer.state_dict(), "steps": self.steps}

        def unbundle(self, bundle):
            self.steps = bundle["steps"]
            self.optimizer = self.optimizer.restore_state(bundle["optimizer"])

    def run(params):
        agent = Agent(params)
        agent.unbundle(agent.bundle_and_checkpoint())
        return agent
    """


def test_a_state_dict_that_a_program_keeps_by_itself() -> None:
    result = result_of(AGENT)
    assert {site.status for site in result.sites} == {"rewritten"}
    [site] = [site for site in result.sites if site.note]
    assert site.line == 5
    assert site.note.startswith("It is restored at train.py:13 from a state dict")


def test_a_kept_state_dict_of_before_is_converted(tmp_path: Path) -> None:
    """As the note says: what one pickled by itself becomes a file of Flax, and then a state."""
    params = {"w": jnp.arange(3.0)}
    before: dict[str, Any] = {"__name__": "agent"}
    after = {**before}
    with legacy_flax():
        exec(program(AGENT), before)
        bundle = before["Agent"](params).bundle_and_checkpoint()
    path = tmp_path / "bundle"
    path.write_bytes(serialization.msgpack_serialize(jax.device_get(bundle)))
    exec(result_of(AGENT).after.decode(), after)
    agent = after["Agent"](jax.tree_util.tree_map(jnp.zeros_like, params))
    with pytest.raises(ValueError, match="step"):
        agent.unbundle(bundle)
    fresh = {"optimizer": agent.optimizer, "steps": 0}
    loaded = load_legacy_checkpoint(path, fresh)
    assert loaded["optimizer"].params["w"].tolist() == [0.0, 1.0, 2.0]


def test_only_the_optimizer_that_is_restored_is_concerned() -> None:
    result = result_of("""
        from flax import optim
        from flax.training import checkpoints

        def train(params, directory, grads):
            first = optim.Adam(0.1).create(params)
            second = optim.Adam(0.1).create(params)
            second = checkpoints.restore_checkpoint(directory, second)
            return first.apply_gradient(grads), second.apply_gradient(grads)
        """)
    assert {site.line for site in result.sites if site.note} == {6}


IN_A_DATACLASS = """
    from typing import Any

    from flax import optim, serialization, struct
    from flax.training import checkpoints

    @struct.dataclass
    class State:
        optimizer: Any

    def restore(params, data):
        return {restored}
    """


@pytest.mark.parametrize(
    "call",
    [
        "checkpoints.restore_checkpoint(data, {state})",
        "serialization.from_bytes({state}, data)",
        "serialization.from_state_dict({state}, serialization.msgpack_restore(data))",
    ],
)
def test_a_dataclass_with_an_optimizer_is_told_of(call: str) -> None:
    restored = call.replace("{state}", "State(optim.Adam(0.1).create(params))")
    text = IN_A_DATACLASS.replace("{restored}", restored)
    [note] = [site.note for site in result_of(text).sites if site.note]

    assert note.startswith("It is restored at train.py:11, where a checkpoint from ")


STORED = """
import jax
from flax import optim, serialization, struct

import export


@struct.dataclass
class State:
    optimizer: optim.Optimizer
    count: int


def run(params, batches):
    state = State(optim.Momentum(0.1, 0.9).create(params), 0)
    for batch in batches:
        grads = jax.tree_util.tree_map(lambda leaf: leaf * batch, state.optimizer.target)
        optimizer = state.optimizer.apply_gradient(grads)
        state = state.replace(optimizer=optimizer, count=state.count + 2)
    return export.read(serialization.to_bytes(state))
"""
READER = """
from flax import serialization


def read(data):
    raw = serialization.msgpack_restore(data)
    return [raw["optimizer"]["target"]], [raw["count"], int(raw["optimizer"]["state"]["step"])]
"""


def test_a_program_that_reads_its_checkpoints_as_dicts_finds_its_optimizer() -> None:
    found = verdict({"train.py": STORED, "export.py": READER})
    assert (found.kind, found.said) == ("equal", False), found
    assert "optimizer: train_state.TrainState" in found.after["train.py"]


TWO = """
    import jax
    import jax.numpy as jnp
    from flax import optim, serialization

    def gradients(params, batch):
        return jax.tree_util.tree_map(lambda x: x * batch + 0.1, params)

    def pretrain(params, batches):
        optimizer = {first}.create(params)
        for batch in batches:
            optimizer = optimizer.apply_gradient(gradients(optimizer.target, batch))
        return serialization.{store}(optimizer)

    def finetune(params, batches, stored):
        optimizer = {second}.create(params)
        optimizer = serialization.{restore}(optimizer, stored)
        for batch in batches:
            rate = 0.1 * 0.5 ** optimizer.state.step
            optimizer = optimizer.apply_gradient(gradients(optimizer.target, batch){rate})
        return optimizer

    def run(params, batches):
        stored = pretrain(params, batches)
        zeros = jax.tree_util.tree_map(jnp.zeros_like, params)
        optimizer = finetune(zeros, batches, stored)
        return [optimizer.target], [int(optimizer.state.step)]
    """
IN_BYTES = ("to_bytes", "from_bytes")
IN_DICTS = ("to_state_dict", "from_state_dict")


def two(first: str, second: str, rate: str, ways: tuple[str, str]) -> str:
    made = {"first": first, "second": second, "rate": rate}
    return program(TWO).format(store=ways[0], restore=ways[1], **made)


@pytest.mark.parametrize("ways", [IN_BYTES, IN_DICTS])
@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("optim.Adam(0.1)", "optim.Adam()"),
        ("optim.Momentum(0.1, beta=0.5)", "optim.Momentum()"),
        ("optim.Adam(0.1, weight_decay=0.01)", "optim.Adam(beta1=0.8, weight_decay=0.1)"),
    ],
)  # fmt: skip
def test_what_one_optimizer_stores_another_goes_on_with(
    first: str, second: str, ways: tuple[str, str]
) -> None:
    """A schedule in one of them alone would begin at its first step again."""
    text = two(first, second, ", learning_rate=rate", ways)
    assert verdict({"train.py": text}).kind == "equal"
    notes = [site.note for site in result_of(text).sites if site.note]
    assert not [note for note in notes if "other parts" in note]


@pytest.mark.parametrize("ways", [IN_BYTES, IN_DICTS])
@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("optim.Adam(0.1)", "optim.Adam(0.1, weight_decay=0.01)"),
        ("optim.RMSProp(0.1, centered=True)", "optim.RMSProp(0.1, centered=False)"),
    ],
)
def test_a_state_with_other_parts_is_told(
    first: str, second: str, ways: tuple[str, str]
) -> None:
    text = two(first, second, "", ways)
    [site] = [one for one in result_of(text).sites if "other parts" in one.note]
    assert site.line == 15
    assert "a checkpoint of the optimizer at train.py:9" in site.note
