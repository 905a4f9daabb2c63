"""What people reported when `flax.optim` was gone, each as a small project: what `doctor` says, and what `rewrite` makes of it."""

from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.optim2optax.conftest import Run
from tests.optim2optax.folders import notebook


@dataclass(frozen=True)
class Report:
    """A project, what `doctor` has to print, and what must stand in its files after `rewrite --modernize`.

    `left` are the codes of what stays.
    """

    files: dict[str, str]
    told: tuple[str, ...]
    after: dict[str, str] = field(default_factory=dict)
    left: tuple[str, ...] = ()


REPORTS = {
    # naruya/VaxNeRF#10: AttributeError at a field of a dataclass
    "a field": Report(
        {
            "utils.py": "import flax\n\n\n@flax.struct.dataclass\nclass State:\n    optimizer: flax.optim.Optimizer\n",
            "train.py": "import flax\nfrom utils import State\n\n\ndef start(params):\n"
            "    return State(optimizer=flax.optim.Adam(1e-3).create(params))\n",
        },
        ("flax.optim, gone since Flax 0.6.0: train.py:6, utils.py:6",),
        {"utils.py": "class State(train_state.TrainState)", "train.py": "optax.adam("},
    ),
    # google-research/jax3d#116: keywords from a dict
    "keywords": Report(
        {
            "stage.py": "import flax\n\nkwargs = {'learning_rate': 1e-3, 'eps': 1e-15}\n\n\n"
            "def start(params):\n    return flax.optim.Adam(**kwargs).create(params)\n",
            "requirements.txt": "flax>=0.4.1\n",
        },
        ("flax.optim, gone since Flax 0.6.0: stage.py:7", "flax>=0.4.1: requirements"),
        {"stage.py": "(**kwargs)"},
    ),
    # allenai/unified-io-inference#1: an import that nothing uses
    "an import": Report(
        {"run.py": "from flax import optim\nimport jax\n\nprint(jax.devices())\n"},
        ("flax.optim, gone since Flax 0.6.0: run.py:1",),
        {"run.py": "import jax\n\nprint"},
    ),
    # verilylifesciences/site-selection-tool#41: pinned where the tests run
    "a workflow": Report(
        {
            "fit.py": "from flax import optim\n\n\ndef start(params):\n    return optim.Adam(0.1).create(params)\n",
            ".github/workflows/test.yml": "steps:\n  - run: pip install 'flax==0.5.3'\n",
        },
        ("fit.py:1", "'flax==0.5.3': .github/workflows/test.yml:2"),
        {"fit.py": "tx=optax.adam(0.1)"},
    ),
    # google-research/vision_transformer#229: a notebook
    "a notebook": Report(
        {
            "demo.ipynb": notebook(
                "!pip install -q flax==0.5.3",
                "import flax.optim as optim\n\nopt = optim.Momentum(beta=0.9).create({})",
                "opt = opt.apply_gradient({}, learning_rate=0.01)",
            )
        },
        ("flax.optim, gone since Flax 0.6.0: demo.ipynb:",),
        {"demo.ipynb": "optax.sgd"},
    ),
    # google-research/meliad#1: classes for gin
    "configurable classes": Report(
        {
            "optimizer_config.py": "import gin\nfrom flax import optim, struct\n\n\n@gin.configurable\n"
            "@struct.dataclass\nclass AdamConfig:\n    learning_rate: float = 1e-3\n\n"
            "    def create_optimizer_def(self) -> optim.OptimizerDef:\n"
            "        return optim.Adam(learning_rate=self.learning_rate)\n",
            "loop.py": "def start(config, params):\n    return config.create_optimizer_def().create(params)\n",
        },
        ("flax.optim, gone since Flax 0.6.0: optimizer_config.py:2",),
        {"optimizer_config.py": "-> optax.GradientTransformation"},
    ),
    # google/flax#3296: activations under their old names
    "flax.nn": Report(
        {"bind.py": "import flax\nimport gin\n\ngin.config.external_configurable(flax.nn.relu, module='flax.nn')\n"},
        ("flax.nn.relu, gone since Flax 0.4.0: bind.py:4\n    fix: It is `jax.nn.relu` now.",),
        {"bind.py": "external_configurable(jax.nn.relu, module='flax.nn')"},
    ),
    # google-research/scenic#821: a name that optax never had
    "optax.momentum": Report(
        {"opt.py": "import optax\n\ntx = optax.momentum(0.1)\n"},
        ("optax.momentum: opt.py:3",),
        left=("FO898",),
    ),
    # google-research/jax3d#119: a bound with a digit too many
    "a bound that keeps nothing out": Report(
        {
            "train.py": "from flax import optim\n\n\ndef start(params):\n    return optim.Adam(0.1).create(params)\n",
            "requirements.txt": "flax<6.0.0\njax<=0.3.6\n",
        },
        ("flax<6.0.0: requirements.txt:1\n    fix: It also installs a Flax without `flax.optim`", "jax<=0.3.6: requirements.txt:2"),
        {"train.py": "tx=optax.adam(0.1)", "requirements.txt": "jax>=0.4.27"},
    ),
    # matthias-wright/flaxmodels#22: what moved to another module of Flax
    "a dynamic scale": Report(
        {"train.py": "from flax.optim import DynamicScale\n\nscale = DynamicScale()\n"},
        ("flax.optim, gone since Flax 0.6.0: train.py:1",),
        {"train.py": "from flax.training.dynamic_scale import DynamicScale\n\nscale = DynamicScale()"},
    ),
    # google/flax#101: the loss and its gradient by the optimizer
    "a gradient by the optimizer": Report(
        {
            "train.py": "from flax import optim\n\noptimizer = optim.Adam(1e-3).create(params)\n"
            "loss, grad = optimizer.compute_gradient(lambda p: p @ p)\noptimizer = optimizer.apply_gradient(grad)\n"
        },
        ("flax.optim, gone since Flax 0.6.0: train.py:1",),
        {"train.py": "jax.value_and_grad(lambda p: p @ p)(optimizer.params)"},
    ),
    # google-research/vision_transformer#241: a lower bound in a cell admits a Flax without it
    "a lower bound in a notebook": Report(
        {
            "colab.ipynb": notebook(
                "!pip install -q 'flax>=0.4.1'",
                "import flax\n\nopt = flax.optim.Adam(1e-3).create({})",
            )
        },
        ("'flax>=0.4.1': colab.ipynb:", "It also installs a Flax without `flax.optim`"),
        {"colab.ipynb": "optax.adam(1e-3)"},
    ),
    # google-research/google-research#2125: pins that no Flax satisfies together
    "pins in a notebook": Report(
        {
            "demo.ipynb": notebook(
                "%pip install flax==0.5.1 jax==0.4.23",
                "import flax\n\noptim = flax.optim.Adam(learning_rate=0).create({})",
                "optim = optim.apply_gradient({}, learning_rate=1e-4)",
            )
        },
        ("flax.optim, gone since Flax 0.6.0: demo.ipynb:", "flax==0.5.1: demo.ipynb:", "jax==0.4.23: demo.ipynb:"),
        {"demo.ipynb": "optax.adam(learning_rate=0.0001)"},
    ),
    # magenta/music-spectrogram-diffusion#14: another package needs the old Flax
    "pins around another package": Report(
        {
            "synthesize.py": "from t5x import models\n\nmodel = models.EncoderDecoderModel\n",
            "requirements.txt": "t5x @ git+https://github.com/google-research/t5x@0123abc\nflax==0.5.1\n",
        },
        ("flax==0.5.1: requirements.txt:2\n    fix: It excludes Flax",),
    ),
    # google-research/scenic#476: classes in a table
    "a table of classes": Report(
        {
            "optimizers.py": "from flax import optim\n\nCLASSES = {'adam': optim.Adam, 'momentum': optim.Momentum}\n\n\n"
            "def get_optimizer(name, **options):\n    return CLASSES[name](**options)\n",
            "train.py": "from optimizers import get_optimizer\n\n\n"
            "def start(params):\n    return get_optimizer('adam', learning_rate=0.1).create(params)\n",
        },
        ("flax.optim, gone since Flax 0.6.0: optimizers.py:1",),
        {"optimizers.py": "CLASSES = {", "train.py": "train_state.TrainState.create("},
    ),
    # SforAiDl/jeta#17: a step within a function of the parameters
    "an inner loop": Report(
        {
            "adapt.py": "import jax\nfrom flax import optim\n\n\ndef adapt(loss, params, batch):\n"
            "    optimizer = optim.GradientDescent(learning_rate=0.01).create(params)\n"
            "    for _ in range(3):\n        grad = jax.grad(loss)(optimizer.target, batch)\n"
            "        optimizer = optimizer.apply_gradient(grad)\n    return optimizer.target\n"
        },
        ("flax.optim, gone since Flax 0.6.0: adapt.py:2",),
        {"adapt.py": "tx=optax.sgd(learning_rate=0.01)"},
    ),
    # toshikwa/rljax#9: what optax was before it was optax
    "optix": Report(
        {"train.py": "from jax.experimental import optix\n\noptimizer = optix.adam(1e-3)\n"},
        ("jax.experimental.optix, gone since JAX 0.2.7: train.py:1\n    fix: It is `optax` now.",),
        {"train.py": "import optax as optix"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("report", REPORTS.values(), ids=REPORTS)
def test_it_is_diagnosed_and_mended(project: Path, run: Run, report: Report) -> None:
    for name, text in report.files.items():
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text(text)
    diagnosis = run("doctor")
    assert diagnosis.exit_code == 1
    for told in report.told:
        assert told in diagnosis.stdout
    done = run("rewrite", "--modernize", ".")
    for code in report.left:
        assert code in done.stdout
    for name, text in report.after.items():
        after = (project / name).read_text()
        assert text in after
        assert "flax.optim" not in after
