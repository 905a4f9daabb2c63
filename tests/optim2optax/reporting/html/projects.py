"""A small project with an outcome of each kind, and the page of it."""

from pathlib import Path

from tests.optim2optax.conftest import Run
from tests.optim2optax.folders import write_files

HOSTILE = "<script>document.title = 'broken'</script>"
PROGRAMS = {
    "model/make.py": """\
from flax import optim


def create_optimizer(params):
    return optim.Adam(learning_rate=1e-3, beta1=0.8).create(params)
""",
    "model/train.py": f"""\
from model.make import create_optimizer
from model.steps import train_step


def train(params, batches):
    optimizer = create_optimizer(params)
    for grads in batches:
        optimizer = train_step(optimizer, grads)
    print("{HOSTILE}", optimizer.state.step)
    return optimizer.target
""",
    "model/steps.py": """\
def train_step(optimizer, grads):
    return optimizer.apply_gradient(grads)
""",
    "probe.py": """\
from flax import optim
import jax


def probe(params, grads, batch):
    optimizer = optim.Momentum(0.1).create(params)
    kind = type(optimizer).__name__
    optimizer = optimizer.apply_gradient(jax.tree_map(abs, grads))
    return kind, optimizer.target


def deduced(optimizer, grads):
    return optimizer.apply_gradient(grads)
""",
    "kept.py": """\
from flax import optim  # optim2optax: ignore


def first(params):
    return optim.GradientDescent(0.1).create(params).target  # optim2optax: ignore
""",
    "<b>.py": f'from flax import optim\n\nNOTE = "{HOSTILE}"\nrule = optim.Adagrad(0.1)\n',
    "broken.py": f"from flax import optim\n\ndef f(:  # {HOSTILE}\n",
    "requirements.txt": "flax==0.3.4\n",
    "pyproject.toml": "",
}


def write_page(project: Path, run: Run, *options: str) -> Path:
    """The page of these programs, which are written into a project."""
    write_files(project, PROGRAMS)
    page = project / "review.html"
    result = run("rewrite", "--check", "--html", page, *options, ".")
    assert result.exit_code == 1, result.output
    return page
