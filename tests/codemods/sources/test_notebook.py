"""Notebooks: what must stay to the letter, what is read, and how the cells change."""

import json
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
import pytest
from flax.training import train_state

from codemods import FileResult, Options, Source, migrate

LEGACY = "from flax import optim\noptimizer = optim.Adam(1e-3).create(params)"
MODERN = (
    "import optax\nfrom flax.training import train_state\n"
    "optimizer = train_state.TrainState.create(\n    apply_fn=None, params=params, tx=optax.adam(1e-3)\n)"
)


def lines(source: str) -> list[str]:
    return source.splitlines(keepends=True)


def code(source: str, **more: Any) -> dict[str, Any]:
    cell = {"cell_type": "code", "execution_count": 3, "metadata": {}, "outputs": []}
    return {**cell, "source": lines(source), **more}


def notebook(
    cells: Sequence[dict[str, Any]], indent: int | None = 1, **metadata: Any
) -> str:
    whole = {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(whole, indent=indent, ensure_ascii=False) + "\n"


def written(*cells: str) -> str:
    """A notebook of such cells of code."""
    return notebook([code(cell) for cell in cells])


def run(text: str) -> FileResult:
    return migrated({"train.ipynb": text})[0]


def migrated(files: dict[str, str]) -> list[FileResult]:
    return migrate([Source(path, text.encode()) for path, text in files.items()])


def sources(result: FileResult) -> list[str]:
    return ["".join(cell["source"]) for cell in json.loads(result.after)["cells"]]


UNTOUCHED = {
    "no legacy optimizer": written("import jax\nimport optax\ntx = optax.adam(1e-3)"),
    "text about it": notebook([{"cell_type": "markdown", "metadata": {}, "source": [LEGACY]}]),
    "in an output": notebook([code("jax = 1", outputs=[{"text": [LEGACY]}])]),
    "another language": notebook([code(LEGACY)], kernelspec={"language": "R"}),
    "a shell cell": written("%%bash\npip install flax"),
    "no Python, and no optimizer": written("this is no Python, flax"),
    "no cells": notebook([]),
    "an empty cell": written(""),
    "an empty cell ahead of a comment": written("", "x = 1  # flax.optim"),
}  # fmt: skip


@pytest.mark.parametrize("text", UNTOUCHED.values(), ids=UNTOUCHED)
def test_untouched(text: str) -> None:
    result = run(text)
    assert (result.error, result.sites, result.after) == (None, (), text.encode())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param('{"cells": [ flax.optim', "cannot be read as a notebook", id="no JSON"),
        pytest.param('{"worksheets": ["flax.optim"]}', "format 4", id="an old format"),
        pytest.param(written(f"{LEGACY}\nprint optimizer"), "cell 1 cannot be parsed", id="Python 2"),
        pytest.param(written("x = 1", f"%%writefile a.py\n{LEGACY}"), "cell 2: `%%writefile", id="file"),
        pytest.param(notebook([code(LEGACY), {**code(""), "source": [3]}]), "cell 2 holds", id="numbers for lines"),
        pytest.param(written(f"{LEGACY}\n__magic_0__"), "cell 1 uses a name", id="a name that is taken"),
        *(
            pytest.param(written(f"{LEGACY}\n{magic}"), f"{magic[-9:]}` may use", id=magic)
            for magic in (
                "%time for g in gs: step(optimizer, g)",
                "x = %timeit -o step(optimizer)",
                "!mkdir at_{optimizer.state.step}",
            )
        ),
        pytest.param(written(LEGACY, "%%timeit p = optimizer.target\nf(p)"), "`%%timeit p", id="set-up"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_an_error(text: str, message: str) -> None:
    result = run(text)
    assert message in (result.error or "")
    assert result.after == text.encode()


FORMS = ["lines", "one string", "escaped", "no line end", "tabs"]


@pytest.mark.parametrize("indent", [1, 2, 4, None], ids=str)
@pytest.mark.parametrize("form", FORMS)
def test_nothing_but_code_changes(indent: int | None, form: str) -> None:
    """Outputs, ids, metadata, indentation, the order of keys and unchanged lines stay as they are, to the letter."""
    output = {"text": ["from flax import optim\n", "λ = 1e-3"], "name": "stdout"}
    first = code(
        "# η and λ\nimport jax", id="b1", outputs=[output], metadata={"a": True}
    )
    cells: list[dict[str, Any]] = [
        first,
        {"source": lines(LEGACY), "outputs": [], "id": "a0", "cell_type": "code"},
        {"cell_type": "markdown", "metadata": {}, "source": ["optim.Adam"]},
    ]
    new = [cells[0], {**cells[1], "source": lines(MODERN)}, cells[2]]
    if form == "one string":
        for cell in (*cells[1:], new[1]):
            cell["source"] = "".join(cell["source"])

    def text(of: list[dict[str, Any]]) -> str:
        found = notebook(of, indent, kernelspec={"language": "python"})
        if form == "escaped":
            found = json.dumps(json.loads(found), indent=indent) + "\n"
        forms = {
            "no line end": found.rstrip("\n"),
            "tabs": found.replace("\n ", "\n\t"),
        }
        return forms.get(form, found)

    assert run(text(cells)).after.decode() == text(new)


def test_the_flow_goes_through_the_cells_in_order() -> None:
    result = run(
        written(
            "!pip install -q flax \\\n  jax\n%matplotlib inline\nimport jax",
            "from flax import optim",
            "def step(optimizer, grads):\n    return optimizer.apply_gradient(grads)\n",
            "%%time\noptimizer = optim.Adam(1e-3).create(params)\nfor g in gs:\n  optimizer = step(optimizer, g)",
            "optimizer?\nfiles = !ls\nif files:\n    !rm old\n    %cd new\noptimizer.target",
        )
    )
    assert [site.status for site in result.sites] == ["rewritten"] * 5
    assert sources(result) == [
        "!pip install -q flax \\\n  jax\n%matplotlib inline\nimport jax",
        "import optax\nfrom flax.training import train_state",
        "def step(optimizer, grads):\n    return optimizer.apply_gradients(grads=grads)\n",
        MODERN.replace("import optax\nfrom flax.training import train_state", "%%time")
        + "\nfor g in gs:\n  optimizer = step(optimizer, g)",
        "optimizer?\nfiles = !ls\nif files:\n    !rm old\n    %cd new\noptimizer.params",
    ]
    assert migrate([Source("train.ipynb", result.after)])[0].after == result.after


def test_metadata_of_another_kind_say_nothing_of_the_language() -> None:
    none = '"metadata": {},\n "nbformat"'
    text = written(LEGACY).replace(none, none.replace("{}", "null"))
    assert "null" in text
    assert sources(run(text)) == [MODERN]


def test_signs_of_magics_within_code_are_none() -> None:
    source = 'text = """\n%matplotlib inline\n!pip\n"""\nrest = (7\n% 4)\nrest = 7 \\\n% 4\n!ls\nx = optimizer.target'
    result = run(written(LEGACY, source))
    assert sources(result)[1] == source.replace("target", "params")


SETUP = "import jax\nimport jax.tools.colab_tpu\njax.tools.colab_tpu.setup_tpu()"
ADAGRAD = "d = {}optim.Adagrad(0.1)\no = d.create({{'w': w}})"


def test_each_cell_that_imported_what_they_replace_gets_them() -> None:
    again = "from flax import optim\nd = optim.Adam(0.1)"
    result = run(written(SETUP, "from flax import optim", again))
    used = "import optax\nd = optax.adam(0.1)"
    assert sources(result) == [SETUP, "import optax", used]


def test_imports_go_to_the_first_use_where_another_notebook_has_them() -> None:
    first = ("!pip install flax", "%run imports.ipynb")
    result = run(written(*first, "%%time\nd = flax.optim.Adam(0.1)"))
    after = "%%time\nimport optax\nd = optax.adam(0.1)"
    assert sources(result) == [*first, after]


def test_the_title_of_a_form_stays_on_top() -> None:
    title = '#@title Train { display-mode: "form" }\n# @markdown With *Adagrad*.\n'
    cell = "import flax\nd = flax.optim.Adagrad(0.1)\no = d.create({'w': w})"
    after, _ = sources(run(written(title + cell, "o.target")))
    assert after.startswith(f"{title}from typing import NamedTuple\n")
    assert after.count("#") == title.count("#")


@pytest.mark.parametrize(
    "line", ["%run {}", "%run -i {}", "%run ./{}", "exec(open('{}').read())"]
)
def test_names_from_a_file_that_is_run(line: str) -> None:
    """What another file has made is followed into the notebook that runs it."""
    name = "make.py" if "exec" in line else "make.ipynb"
    make = "from flax import optim\n\n\ndef make(p):\n    return optim.Adam(1e-3).create(p)"
    other = make if name == "make.py" else written(make)
    runs = "import jax\n" + line.format(name)
    cells = written(runs, "thing = make(p)\nthing.target")
    first, second = migrated({name: other, "explore.ipynb": cells})
    assert first.changed
    assert sources(second) == [runs, "thing = make(p)\nthing.params"]


HELPED = {
    "imports in several cells": [SETUP, "from flax import optim", "import jax.numpy as jnp", ADAGRAD.format("")],
    "what the helper needs in a later cell":
        ["import flax", "x = 1", "import jax.numpy as jnp\nfrom typing import NamedTuple", ADAGRAD.format("flax.")],
    "imports and use in one cell": [SETUP, f"from flax import optim\n{ADAGRAD.format('')}"],
}  # fmt: skip


@pytest.mark.parametrize("cells", HELPED.values(), ids=HELPED)
def test_the_cells_run_from_top_to_bottom(cells: list[str]) -> None:
    """Helpers stand behind the imports that they need, and ahead of their first use."""
    result = run(written(*cells))
    assert {site.status for site in result.sites} == {"rewritten"}
    new = sources(result)
    assert SETUP not in cells or new[0] == SETUP
    names: dict[str, Any] = {"w": np.ones(3), "jax": jax}
    for source in new:
        exec(source.replace(SETUP, ""), names)
    assert isinstance(names.get("o", names["optax"]), train_state.TrainState)


def test_imports_go_to_those_of_jax_and_not_to_the_first_there_are() -> None:
    """Nothing that a notebook of this kind imports is dropped, so nothing else tells the place."""
    module = "from flax import optim\n\ndef make():\n    return optim.Adam(1e-3)\n"
    first = "import os\nassert os.environ"
    cells = written(first, "import flax\nimport train", "o = train.make().create(p)")
    _, result = migrated({"train.py": module, "explore.ipynb": cells})
    same, second, third = sources(result)
    assert same == first
    assert second == "import flax\nimport train\nfrom flax.training import train_state"
    assert third.startswith("o = train_state.TrainState.create(")


def test_what_a_magic_is_given_is_read_and_stays_with_its_optimizer() -> None:
    make = "from flax import optim\n\ndef make(p):\n    return optim.Adam(1e-3).create(p)\n"
    timed = "%time thing = train.make(p)\n%time thing.apply_gradient(g)\nx = 3"
    cells = written("import train", timed)
    first, second = migrated({"train.py": make, "explore.ipynb": cells})
    assert not first.changed
    assert not second.changed
    [site] = second.sites
    assert (site.code, site.before) == ("FO917", "thing.apply_gradient")


@pytest.mark.parametrize(
    "magic", ["%timeit -n 10 -r3", "%lprun -f step -f f", "%prun -q -l 5"]
)
def test_what_is_timed_with_options_is_read(magic: str) -> None:
    result = run(written(LEGACY, f"{magic} f(optimizer)", "optimizer.target"))
    assert sources(result) == [MODERN, f"{magic} f(optimizer)", "optimizer.params"]


def test_places_name_the_cell_and_the_line_of_the_file() -> None:
    used = "len(jax.tree_util.tree_leaves(optimizer))"
    text = written("import jax", f"\n{LEGACY}\n{used}")
    result = run(text)
    found = next(site for site in result.sites if site.code == "FO924")
    assert "tree_leaves(optimizer)" in text.splitlines()[found.line - 1]
    assert found.message.startswith("cell 2: ")
    sibling = next(site for site in result.sites if site.code == "FO901")
    assert f"reaches train.ipynb:{found.line}, " in sibling.message


def test_a_notebook_with_nothing_but_numpy_is_modernized() -> None:
    text = written("import numpy as np", "best = np.infty")
    [result] = migrate([Source("search.ipynb", text.encode())], Options(modernize=True))
    assert result.after.decode() == text.replace("np.infty", "np.inf")
