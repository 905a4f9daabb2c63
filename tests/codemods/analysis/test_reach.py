"""Of a large program the files are asked about to which optimizers may get; the others help to answer."""

from textwrap import dedent

import pytest

from codemods import FileResult, Source, migrate
from tests.codemods.analysis.test_out_of_view import PROGRAMS, marked
from tests.generated.verdicts import KEPT, verdict

SEVERAL = [name for name, files in PROGRAMS.items() if len(files) > 2]


@pytest.fixture
def _all_are_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("codemods.sources.relevance.SMALL", 0)


@pytest.mark.usefixtures("legacy_wheel", "_all_are_large")
@pytest.mark.parametrize("name", marked(SEVERAL))
def test_what_matters_is_taken_in(name: str) -> None:
    found = verdict(PROGRAMS[name])
    assert found.kind in KEPT, f"{found.kind}: {found.why}"
    assert found.said or found.kind == "equal"


TRAIN = """
    from flax import optim
    {imported}

    def train(params, grads):
        optimizer = optim.Adam(0.1).create(params)
        for grad in grads:
            optimizer = {step}
        return optimizer
    """
ALONE = TRAIN.format(imported="", step="optimizer.apply_gradient(grad)")
ADVANCE = "engine.advance(optimizer, grad)"
WITH_LIBRARY = TRAIN.format(imported="from lab import engine", step=ADVANCE)
TABLES = "def advance(one, grad):\n    return f0(one)[0]\n" + "".join(
    f"def f{number}(x):\n    return [x, f{(number * 7) % 97}, f{(number * 5) % 97}(x)]\n"
    for number in range(97)
)


def project(**files: str) -> dict[str, FileResult]:
    texts = {f"{name.replace('__', '/', 1)}.py": text for name, text in files.items()}
    sources = [Source(path, dedent(text).encode()) for path, text in texts.items()]
    return {result.path: result for result in migrate(sources)}


BOTH = """
    from lab import broken, tables

    def advance(one, grad):
        return tables.advance(one, broken.advance(one, grad))
    """


@pytest.mark.usefixtures("_all_are_large")
@pytest.mark.parametrize("text", ["def advance(one, grad)\n    print one\n", "\\"])
def test_a_file_that_is_no_python_is_as_one_that_is_not_there(text: str) -> None:
    files = {"train": WITH_LIBRARY, "lab__engine": BOTH, "lab__tables": TABLES}
    results = project(**files, apart=ALONE, lab__broken=text)
    without = project(**files, apart=ALONE)
    assert "cannot be parsed" in str(results.pop("lab/broken.py").error)
    assert results == without
    assert results["apart.py"].changed
    assert results["train.py"].changed


@pytest.mark.usefixtures("_all_are_large")
def test_what_does_not_matter_is_not_analysed() -> None:
    results = project(train=ALONE, main="import train, lab.tables", lab__tables=TABLES)
    assert results["train.py"].changed
    assert all(site.status == "rewritten" for site in results["train.py"].sites)


COLUMNS = """
    import loop

    class Column:
        def __init__(self, target):
            self.target = target

        def show(self, compiler, **extra):
            return [compiler.quote(self.target.name), *extra]

        def shown(self, compiler, connection, **extra):
            return Column.show(self, compiler, connection=connection, **extra)

    def names(columns, compiler):
        return [column.show(compiler) for column in columns if column.target]
    """


@pytest.mark.parametrize("used", ["loop.train({}, [])", "loop"])
def test_a_target_in_a_file_without_jax_is_its_own(used: str) -> None:
    """Since every optimizer is accounted for."""
    main = f"import loop, lab.columns\n\nprint({used})\n"
    results = project(loop=ALONE, lab__columns=COLUMNS, main=main)
    assert results["loop.py"].changed
    assert all(site.status == "rewritten" for site in results["loop.py"].sites)
    assert not results["lab/columns.py"].sites


MODELS = """
    import jax.numpy as jnp


    def initial():
        return {{"w": jnp.ones(2, {dtype})}}


    def is_known(dtype):
        return isinstance(dtype, complex)
    """
MAIN = "import train\nfrom lab import models\n\ntrain.train(models.initial(), [])\n"


@pytest.mark.usefixtures("_all_are_large")
def test_params_may_be_complex_where_no_optimizer_gets_to() -> None:
    files = {"train": ALONE, "main": MAIN}
    results = project(**files, lab__models=MODELS.format(dtype="jnp.float32"))
    assert results["train.py"].changed
    for dtype in ("jnp.complex64", "'complex64'", "complex", "1j"):
        results = project(**files, lab__models=MODELS.format(dtype=dtype))
        assert not results["train.py"].changed
        assert "FO925" in {site.code for site in results["train.py"].sites}
        assert not results["lab/models.py"].analysed


CLIPPING = """
    from flax import optim
    from jax.example_libraries.optimizers import clip_grads

    CLIP = 1.0
    LIMITS = {{"clip": 1.0}}


    def set_clip(clip):
        global CLIP
        CLIP = clip


    def tick(number):
        pass


    def fit(params, grads):
        optimizer = optim.Adam(0.1).create(params)
        for number, grad in enumerate(grads):
            tick(number)
            grad = clip_grads(grad, {limit})
            optimizer = optimizer.apply_gradient(grad)
        return optimizer.target
    """
CALLING = (
    "import hooks, train\n\ntrain.tick = hooks.slow_down\nprint(train.fit({}, []))\n"
)
HOOK = "import train\n\n\ndef slow_down(number, config=None):\n    {}\n"


@pytest.mark.usefixtures("_all_are_large")
@pytest.mark.parametrize(
    ("limit", "hook"),
    [
        ("CLIP", "train.CLIP = 0.1"),
        ("CLIP", "train.CLIP *= 0.1"),
        ("CLIP", "other, train.CLIP = 0, 0.1"),
        ("CLIP", "setattr(train, 'CLIP', 0.1)"),
        ("LIMITS['clip']", "train.LIMITS['clip'] = 0.1"),
        ("LIMITS['clip']", "train.LIMITS.update(clip=0.1)"),
    ],
)
def test_what_is_set_where_no_optimizer_gets_to_is_not_read_at_another_time(
    limit: str, hook: str
) -> None:
    train = CLIPPING.format(limit=limit).replace("global CLIP", "CLIP = 0")
    results = project(train=train, main=CALLING, hooks=HOOK.format(hook))
    assert not results["hooks.py"].analysed
    assert results["train.py"].changed
    assert b"clip_by_global_norm" not in results["train.py"].after


@pytest.mark.usefixtures("_all_are_large")
def test_what_a_function_sets_may_be_set_where_no_optimizer_gets_to() -> None:
    files = {"main": CALLING, "hooks": HOOK.format("train.set_clip(0.1)")}
    results = project(train=CLIPPING.format(limit="CLIP"), **files)
    assert not results["hooks.py"].analysed
    assert b"clip_by_global_norm" not in results["train.py"].after


@pytest.mark.usefixtures("_all_are_large")
@pytest.mark.parametrize(
    "hook",
    [
        "print(train.CLIP == 0.1)",
        "config.RATE = 0.1",
        "CLIP, rate = 0.1, 0.2",
        "self.CLIP, train.rate = 0.1, 0.2",
    ],
)
def test_what_is_set_nowhere_is_read_once(hook: str) -> None:
    train = CLIPPING.format(limit="CLIP").replace("global CLIP", "CLIP = 0")
    results = project(train=train, main=CALLING, hooks=HOOK.format(hook))
    assert b"optax.clip_by_global_norm(CLIP)" in results["train.py"].after


RUN = """
    from flax import optim

    def run(params, grads):
        optimizer = optim.Adam(0.1).create(params)
        for grad in grads:
            optimizer = optimizer.apply_gradient(grad)
        print(optimizer.target)

    class Runner:
        def start(self, params, grads):
            run(params, grads)

    ALL = {{"sgd": [run]}}

    def chosen(name):
        return ALL[name][0]

    {call}
    """
IN_VIEW = "if __name__ == '__main__':\n        run({'w': 1.0}, [])"


@pytest.mark.usefixtures("_all_are_large")
@pytest.mark.parametrize("call", ["", IN_VIEW])
@pytest.mark.parametrize(
    "sweep",
    [
        "sgd.run(ones, [])",
        "sgd.Runner().start(ones, [])",
        "sgd.ALL['sgd'][0](ones, [])",
        "sgd.chosen('sgd')(ones, [])",
    ],
)
def test_who_calls_what_uses_an_optimizer_is_in_view(call: str, sweep: str) -> None:
    sweeping = f"import jax.numpy as jnp\nimport sgd\n\nones = jnp.ones(3)\n{sweep}\n"
    idle = "import sgd\n\nprint(sgd)\n"
    results = project(sgd=RUN.format(call=call), sweep=sweeping, idle=idle)
    # the params are no dict
    assert b"AnyParamsTrainState.create(" in results["sgd.py"].after


NAMING = {
    "its own import": ("import flax\nimport lab.train\nprint(flax)\n", False),
    "an attribute of something else": ("import lab.train, tools\nprint(tools.flax)\n", False),
    "an import from there": ("from lab.train import flax\nprint(flax)\n", True),
    "an attribute of the module": ("import lab.train\nprint(lab.train.flax)\n", True),
    "of the module by another name": ("import lab.train as loop\nprint(loop.flax)\n", True),
    "all names": ("from lab.train import *\nprint(flax)\n", True),
}  # fmt: skip


@pytest.mark.usefixtures("_all_are_large")
@pytest.mark.parametrize(("text", "stays"), NAMING.values(), ids=NAMING)
def test_a_file_out_of_view_that_takes_an_import(text: str, stays: bool) -> None:
    making = "import flax.optim\n\ndef make(params):\n    return flax.optim.Adam(1e-3).create(params)\n"
    results = project(lab__train=making, lab__show=text)
    codes = {site.code for site in results["lab/train.py"].sites}
    assert ("FO911" in codes) == stays
