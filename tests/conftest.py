"""What all tests share: eight devices to run on, and the wheel of the old Flax."""

import gc
import os
import sys
import time
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import pytest
from packaging.version import Version

# JAX reads these once, when it is first imported. Set the platform yourself to run the tests on another device.
os.environ.setdefault("JAX_PLATFORMS", "cpu")
# Compiling takes far longer here than what is compiled; without these, all tests together take a quarter longer.
FLAGS = {
    "xla_force_host_platform_device_count": "8",
    "xla_backend_optimization_level": "0",
    "xla_cpu_parallel_codegen_split_count": "1",
}
# XLA ends the process where it reads an option that it does not have: later versions always use these emitters.
if Version(version("jaxlib")) < Version("0.11.1"):
    FLAGS["xla_cpu_use_fusion_emitters"] = "false"
given = os.environ.get("XLA_FLAGS", "")
os.environ["XLA_FLAGS"] = " ".join(
    [
        given,
        *(f"--{name}={value}" for name, value in FLAGS.items() if name not in given),
    ]
)


def pytest_collection_finish() -> None:
    """What is there ahead of the first test is there to the last: no search for garbage has to go through it."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def executables(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Processes that tests start find there what another one has compiled, unless the user has chosen a place."""
    folder = tmp_path_factory.mktemp("executables")
    with pytest.MonkeyPatch.context() as patch:
        if "JAX_COMPILATION_CACHE_DIR" not in os.environ:
            patch.setenv("JAX_COMPILATION_CACHE_DIR", str(folder))
            patch.setenv("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
            patch.setenv("JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES", "-1")
        yield


@pytest.fixture(scope="session")
def legacy_wheel() -> Path:
    """The wheel of Flax 0.5.3, fetched if need be. Without it nothing can be compared, so its lack is an error."""
    from optim2optax.legacy_wheel import find_wheel

    return find_wheel()


@pytest.fixture(
    scope="module", params=["quick", pytest.param("exact", marks=pytest.mark.thorough)]
)
def judged(request: pytest.FixtureRequest) -> str:
    """How the judge compiles: in a third of the time, or as for users, by which no verdict may change.

    Only tests of what is identical, and of what overflows in float32, have to compile as for users.
    """
    return str(request.param)


MANY_TESTS = 50
_done = 0


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    """What JAX has compiled for programs of earlier tests is forgotten now and then: it only slows down those that follow."""
    global _done  # noqa: PLW0603
    yield
    _done += 1
    if _done % MANY_TESTS == 0 and "jax" in sys.modules:
        sys.modules["jax"].clear_caches()


@pytest.fixture(autouse=True)
def compiled(request: pytest.FixtureRequest) -> None:
    """The judge compiles as a test that is `judged` asks for, and as for users in all others."""
    if "judged" in request.fixturenames:
        _compile(request.getfixturevalue("judged"))
    elif COMPILING in sys.modules:
        _compile("exact")


COMPILING = "optim2optax.parity.optimizer.same_function"
_exact: dict[str, dict[str, str | bool]] = {}
"""How the judge compiles for users, while it compiles quickly."""


def _compile(mode: str) -> None:
    """Let the judge compile in a mode, and forget what it has compiled in the other."""
    from optim2optax.parity.optimizer import emitted_pair, same_function

    if ("exact" in _exact) == (mode == "quick"):
        return
    if mode == "quick":
        _exact["exact"] = same_function.EXACT
        same_function.EXACT = {
            **same_function.EXACT,
            "xla_cpu_use_fusion_emitters": False,
        }
    else:
        same_function.EXACT = _exact.pop("exact")
    emitted_pair._compared.cache_clear()


VARIABLE = "OPTIM2OPTAX_LEGACY_ENV"
"""Names a folder in which to keep the environment from one run of the tests to the next."""


@pytest.fixture(scope="session")
def legacy_python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of an environment with the old Flax and JAX, made once, even if several processes ask for it."""
    from optim2optax.parity.running.interpreter import (
        LegacyEnvironmentError,
        create_legacy_environment,
        find_python,
    )

    try:
        find_python()
    except LegacyEnvironmentError as error:
        pytest.skip(str(error))
    shared = (
        tmp_path_factory.getbasetemp().parent
        if "PYTEST_XDIST_WORKER" in os.environ
        else tmp_path_factory.getbasetemp()
    )
    directory = Path(os.environ.get(VARIABLE) or shared / "legacy-env")
    lock, done = shared / "legacy-env.lock", shared / "legacy-env.done"
    try:
        lock.touch(exist_ok=False)
    except FileExistsError:
        while not done.exists():
            time.sleep(0.5)
    else:
        try:
            create_legacy_environment(directory)
        finally:
            done.touch()
    return create_legacy_environment(directory)
