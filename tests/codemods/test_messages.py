"""Locations in messages: the same record is shown to people and written into files."""

import pytest

from codemods import migrate
from codemods.messages import joined, message, text_of
from codemods.model import File, Location, Message, Options, Source

PLACE = Location("lab/train.py", 7)

COMPLEX = """
from flax import optim

def make(params):
    phase = 1j
    return optim.Adam(1e-3).create({"w": phase * params["w"]})
"""


@pytest.mark.parametrize(
    ("made", "text"),
    [
        pytest.param(message("It stays."), "It stays.", id="without-location"),
        pytest.param(message("`{}` stays."), "`{}` stays.", id="braces-without-values"),
        pytest.param(message("`{}` stays at {}.", "{}", PLACE), "`{}` stays at up/train.py:7.", id="braces"),
        pytest.param(message("{}", File("lab/train.py")), "up/train.py", id="whole-file"),
        pytest.param(message("at {}", Location("other.py", 1)), "at other.py:1", id="another-file"),
        pytest.param(message("{}: {}", "why", message("at {}", PLACE)), "why: at up/train.py:7", id="nested"),
        pytest.param(joined(", ", [PLACE, "…", PLACE]), "up/train.py:7, …, up/train.py:7", id="joined"),
        pytest.param(joined(" ", []), "", id="nothing"),
    ],
)  # fmt: skip
def test_a_message_says_paths_as_they_are_shown(made: Message, text: str) -> None:
    assert made.text({"lab/train.py": "up/train.py"}) == text


def test_a_path_in_the_text_itself_is_no_location() -> None:
    made = message("`lab/train.py` is quoted, {} is meant.", PLACE)
    text = made.text({"lab/train.py": "t.py"})
    assert text == "`lab/train.py` is quoted, t.py:7 is meant."
    assert text_of("lab/train.py", {"lab/train.py": "t.py"}) == "lab/train.py"


@pytest.mark.parametrize("sentence", ["It stays at {}.", "{} is where it stays."])
def test_a_clause_has_no_full_stop(sentence: str) -> None:
    made = message("{}", message(sentence, PLACE)).as_clause()
    assert made.text() == sentence.format("lab/train.py:7").removesuffix(".")


def test_a_template_has_a_hole_for_each_value() -> None:
    with pytest.raises(ValueError, match="zip"):
        message("It stays.", PLACE)


def test_a_report_has_paths_as_they_are_shown_and_a_comment_as_they_are() -> None:
    source = Source("lab/make.py", COMPLEX.encode(), "../lab/make.py")
    [result] = migrate([source], Options(partial=True, ignore=("FO706",)))
    [message] = [site.message for site in result.sites if site.code == "FO925"]
    assert message.startswith("Complex numbers are made in ../lab/make.py:5;")
    comment = b"# TODO(optim2optax): FO925 Complex numbers are made in lab/make.py:5;"
    assert comment in result.after
