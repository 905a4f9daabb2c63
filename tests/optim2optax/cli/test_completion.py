"""Completion in shells, by the protocol of click."""

import pytest
from click.testing import CliRunner

from codemods.optimizers import optimizers
from codemods.rules import catalogue
from optim2optax.cli import application


def completions(shell: str, *words: str) -> str:
    """What a shell gets for a command line that ends in an unfinished word."""
    current = words[-1] if shell == "fish" else str(len(words))
    environment = {
        "_OPTIM2OPTAX_COMPLETE": f"{shell}_complete",
        "COMP_WORDS": " ".join(("optim2optax", *words)),
        "COMP_CWORD": current,
    }
    runner = CliRunner()
    return runner.invoke(application, prog_name="optim2optax", env=environment).output


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_commands_options_and_codes(shell: str) -> None:
    assert "rewrite" in completions(shell, "re")
    assert "--partial" in completions(shell, "rewrite", "--par")
    assert "FO202" in completions(shell, "explain", "fo20")
    assert "FO301" not in completions(shell, "explain", "fo20")
    is_told = catalogue()["FO202"].summary in completions(shell, "explain", "FO202")
    assert is_told == (shell != "bash")


def test_all_that_can_be_explained() -> None:
    lines = completions("bash", "explain", "").splitlines()
    assert lines == [f"plain,{name}" for name in (*catalogue(), *optimizers())]
    assert completions("bash", "explain", "mom") == "plain,Momentum\n"


@pytest.mark.parametrize("option", ["--select", "--ignore"])
def test_codes_behind_a_comma(option: str) -> None:
    assert completions("bash", "rewrite", option, "FO1,fo20").splitlines() == [
        f"plain,FO1,{code}" for code in catalogue() if code.startswith("FO20")
    ]
