"""Where the wheel of the old Flax comes from, and that it is the published one."""

import subprocess
from pathlib import Path

import platformdirs
import pytest

from optim2optax.legacy_wheel import (
    OPTIM_RELEASE,
    WHEEL_VARIABLE,
    LegacyWheelError,
    find_wheel,
)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache folder, and no environment variable."""
    folder = tmp_path / "cache"
    monkeypatch.setattr(platformdirs, "user_cache_path", lambda name: folder / name)
    monkeypatch.delenv(WHEEL_VARIABLE, raising=False)
    return folder / "optim2optax"


class Pip:
    """Stands in for pip: brings the given bytes, or fails with the given message."""

    def __init__(self, content: bytes | None, message: str = "") -> None:
        self.content, self.message, self.commands = content, message, list[list[str]]()

    def run(self, command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        self.commands.append(command)
        if self.content is not None:
            Path(command[command.index("--dest") + 1], OPTIM_RELEASE.wheel).write_bytes(
                self.content
            )
        return subprocess.CompletedProcess(
            command, self.content is None, "", self.message
        )


def use(pip: Pip, monkeypatch: pytest.MonkeyPatch) -> Pip:
    monkeypatch.setattr(subprocess, "run", pip.run)
    return pip


def test_it_is_fetched_once_and_then_cached(
    cache: Path, legacy_wheel: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pip = use(Pip(legacy_wheel.read_bytes()), monkeypatch)
    assert find_wheel() == find_wheel() == (cache / OPTIM_RELEASE.wheel).resolve()
    assert len(pip.commands) == 1
    assert pip.commands[0][-1] == OPTIM_RELEASE.requirement
    assert [path.name for path in cache.iterdir()] == [OPTIM_RELEASE.wheel]


def test_the_environment_variable_goes_before_the_cache(
    cache: Path, legacy_wheel: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(WHEEL_VARIABLE, str(legacy_wheel))
    assert find_wheel() == legacy_wheel.resolve()
    assert not cache.exists()


@pytest.mark.parametrize(
    "message", ["No module named pip", "ERROR: No matching distribution found", ""]
)
def test_without_pip_or_network_the_error_says_what_to_do(
    cache: Path, monkeypatch: pytest.MonkeyPatch, message: str
) -> None:
    use(Pip(None, message), monkeypatch)
    with pytest.raises(LegacyWheelError) as error:
        find_wheel()
    assert message in str(error.value)
    assert WHEEL_VARIABLE in str(error.value)
    assert f"pip download --no-deps {OPTIM_RELEASE.requirement}" in str(error.value)
    assert not list(cache.iterdir())


def test_what_pip_brings_is_checked_before_it_is_kept(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(Pip(b"something else"), monkeypatch)
    with pytest.raises(LegacyWheelError, match="not the published wheel"):
        find_wheel()
    assert not list(cache.iterdir())


@pytest.mark.parametrize("given", ["variable", "cache"])
def test_a_changed_wheel_is_refused_wherever_it_comes_from(
    cache: Path, legacy_wheel: Path, monkeypatch: pytest.MonkeyPatch, given: str
) -> None:
    cache.mkdir(parents=True)
    changed = cache / OPTIM_RELEASE.wheel
    changed.write_bytes(legacy_wheel.read_bytes() + b"\0")
    if given == "variable":
        monkeypatch.setenv(WHEEL_VARIABLE, str(changed))
    with pytest.raises(LegacyWheelError, match="not the published wheel"):
        find_wheel()


def test_a_wheel_that_is_not_there_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(WHEEL_VARIABLE, str(tmp_path / "nowhere.whl"))
    with pytest.raises(LegacyWheelError, match=r"nowhere\.whl"):
        find_wheel()


def test_a_cache_folder_that_cannot_be_made_is_named(cache: Path) -> None:
    cache.parent.write_text("a file where the folder should be")
    with pytest.raises(LegacyWheelError, match=WHEEL_VARIABLE):
        find_wheel()
