"""What stands within an f-string stays on its line, in quotes that do not end it: so it is Python 3.11 too."""

import pytest

from tests.codemods.programs import migrated

PROGRAM = """
    import jax
    import jax.numpy as jnp
    import numpy as np
    from flax import optim

    def train(params, grads, config):
        optimizer = optim.Adam(config.rate()).create(params)
        {}
        return optimizer.apply_gradient(grads)
    """
STEP = "jnp.asarray(optimizer.step, jnp.int32)"
RATE = "optimizer.optimizer_def.hyper_params.learning_rate"
IN_SINGLE = "optax.tree_utils.tree_get(optimizer.opt_state, 'learning_rate')"
IN_DOUBLE = 'optax.tree_utils.tree_get(optimizer.opt_state, "learning_rate")'
CASES = {
    "a line that gets too long": (
        """f"{'/'.join(sorted(params))}-{np.mean(optimizer.state.step.astype(float)):07.1f}\"""",
        f"""f"{{'/'.join(sorted(params))}}-{{np.mean({STEP}.astype(float)):07.1f}}\"""",
    ),
    "new text in double quotes": (f'f"{{{RATE}}}"', f'f"{{{IN_SINGLE}}}"'),
    "new text in single quotes": (f"f'{{{RATE}}}'", f"f'{{{IN_DOUBLE}}}'"),
    "new text beside the author's own":
        (f"f\"{{config['name']}} {{{RATE}}}\"", f"f\"{{config['name']}} {{{IN_SINGLE}}}\""),
    "three quotes, which one does not end": (f'f"""{{{RATE}}}"""', f'f"""{{{IN_DOUBLE}}}"""'),
}  # fmt: skip


@pytest.mark.parametrize(("before", "after"), CASES.values(), ids=CASES)
def test_an_f_string(before: str, after: str) -> None:
    assert after in migrated(PROGRAM.format(f"print({before})"))
