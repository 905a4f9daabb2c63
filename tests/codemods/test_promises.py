"""The promises of the design, each on whole small programs: bytes in, bytes and an account out."""

import ast
import re
from dataclasses import replace

import pytest

from codemods import FileResult, Options, Source, migrate
from tests.codemods.programs import (
    OPTAX_ALONE,
    before_and_after,
    changes,
    migrated,
    program,
    table,
)

PARTIAL = Options(partial=True)


def run(content: bytes | str, options: Options | None = None) -> FileResult:
    """What becomes of one file, byte for byte."""
    text = content if isinstance(content, bytes) else program(content).encode()
    [result] = migrate([Source("train.py", text)], options)
    return result


def told(result: FileResult, status: str) -> list[tuple[int, str]]:
    """Line and code of the sites with a status, in order."""
    return sorted(
        (site.line, site.code) for site in result.sites if site.status == status
    )


# 1. Whole optimizers or nothing.

WHOLE_OR_NOTHING = """
== unpacked arguments keep the second optimizer of a file
[(1, "FO911"), (5, "FO901"), (5, "FO904"), (7, "FO901"), (8, "FO901")]
+ import optax
  from flax import optim
+ from flax.training import train_state

  def train(params, hps, grads):
-     one = optim.Momentum(0.1).create(params)
+     one = train_state.TrainState.create(
+         apply_fn=None, params=params, tx=optax.sgd(0.1, momentum=0.9)
+     )
      two = optim.WeightNorm(**hps).create(params)
-     one = one.apply_gradient(grads)
+     one = one.apply_gradients(grads=grads)
      two = two.apply_gradient(grads)
-     return one.target, two.target
+     return one.params, two.target
== moments read in one function keep what another function made
[(1, "FO911"), (4, "FO901"), (4, "FO901"), (7, "FO906")]
+ import optax
  from flax import optim
+ from flax.training import train_state

  def make(params):
      return optim.Adafactor(1e-3).create(params)

  def moments(params):
      return make(params).state.param_states

  def other(params):
-     return optim.Adam(1e-2).create(params).target
+     return train_state.TrainState.create(
+         apply_fn=None, params=params, tx=optax.adam(1e-2)
+     ).params
"""


@pytest.mark.parametrize(("left", "change"), table(WHOLE_OR_NOTHING, values=2))
def test_a_bad_site_keeps_its_whole_optimizer_and_no_other(
    left: str, change: str
) -> None:
    before, after = before_and_after(change)
    result = run(before, OPTAX_ALONE)

    assert result.after.decode() == after
    assert told(result, "unresolved") == ast.literal_eval(left)
    for site in result.sites:
        assert site.message
        assert (site.remedy is not None) == (site.status == "unresolved")
        assert (site.after is not None) == (site.status == "rewritten")


def test_siblings_tell_the_way_to_the_site_that_stands_in_the_way() -> None:
    files = {
        "models.py": """
            def create(params):
                return optim.Adafactor(1e-3).create(params)
            """,
        "storing.py": """
            class Store:
                def __init__(self, optimizer):
                    self.optimizer = optimizer

                def write(self, file):
                    file.write(self.optimizer.state.param_states)
            """,
        "train.py": """
            from models import create
            from storing import Store

            def steps(optimizer, grads):
                return optimizer.apply_gradient(grads)

            def main(params, grads, file):
                optimizer = create(params)
                optimizer = steps(optimizer, grads)
                Store(optimizer).write(file)
            """,
    }
    sources = [Source(name, program(text).encode()) for name, text in files.items()]
    results = migrate(sources, OPTAX_ALONE)
    sites = [site for result in results for site in result.sites]
    told = {site.message for site in sites if site.code == "FO901"}
    way = (
        "reaches storing.py:6 through train.py:8, train.py:10, which cannot be migrated"
    )
    why = "(FO906): The optimizer's state is used directly here."
    assert told == {f"The same optimizer, created in models.py:4, {way} {why}"}


MARKED = """
== one marker above the statement, in its indentation
  from flax import optim
+ from flax.training import train_state

  def train(params, hps):
      if hps:
-         optimizer = optim.WeightNorm(**hps).create(params)
-     return optimizer.target
+         # TODO(optim2optax): FO904 The arguments of this call are unpacked.
+         optimizer = train_state.TrainState.create(
+             apply_fn=None, params=params, tx=optim.WeightNorm(**hps)
+         )
+     return optimizer.params
== two sites with one reason on a line share a marker
- from flax import optim
+ from flax.training import train_state

- def read(optimizer: optim.Optimizer):
+ def read(optimizer: train_state.TrainState):
+     # TODO(optim2optax): FO906 The optimizer's state is used directly here.
      a = optimizer.state.param_states; b = optimizer.state.param_states
-     return a, b, optimizer.target
+     return a, b, optimizer.params
"""


@pytest.mark.parametrize(("before", "after"), changes(MARKED))
def test_partial_work_leaves_markers_and_never_doubles_them(
    before: str, after: str
) -> None:
    options = replace(OPTAX_ALONE, partial=True)
    first = run(before, options)

    assert first.after.decode() == after
    assert run(first.after, options).after == first.after
    assert b"TODO" not in run(before, OPTAX_ALONE).after


def test_what_a_marker_is_about_stays_until_it_is_gone() -> None:
    """Even if nothing else shows, half-way, why it has to."""
    text = """
        import jax
        from flax import optim
        from flax.training import train_state

        def create(params):
            return train_state.TrainState.create(apply_fn=None, params=params, tx=optim.Adam(1e-3))

        def step(optimizer, grads):
            # TODO(optim2optax): FO910 This step keeps the constructor's learning rate.
            # (A remark.)
            optimizer = optimizer.apply_gradient(grads)
            return optimizer
        """
    for options in (Options(), PARTIAL):
        result = run(text, options)
        assert "optimizer.apply_gradient(grads)" in result.after.decode()
        [site] = [site for site in result.sites if site.code == "FO910"]
        assert (site.line, site.status) == (11, "unresolved")
        assert site.message == "This step keeps the constructor's learning rate."
    without = "\n".join(line for line in text.split("\n") if "TODO" not in line)
    assert "optimizer.apply_gradients(grads=grads)" in run(without).after.decode()


def test_what_a_marker_is_about_is_told_until_it_is_gone() -> None:
    """Here nothing but the marker shows that there was a legacy optimizer."""
    text = """
        import jax
        from flax.training import train_state

        def step(optimizer: train_state.TrainState, grads, rate):
            # TODO(optim2optax): FO910 This step sets the learning rate, but the place that makes the optimizer is not in view.
            # TODO(optim2optax): XX1 Something of another program.

            return optimizer.apply_gradient(grads, learning_rate=rate)

        def other():
            # TODO(optim2optax): XX1 Something of another program.
            return 1
        """
    for options in (Options(), PARTIAL):
        result = run(text, options)
        assert result.after.decode() == program(text)
        [site] = result.sites
        assert (site.line, site.code, site.status) == (8, "FO910", "unresolved")


def test_no_marker_in_a_file_that_cannot_be_edited() -> None:
    """LibCST knows no annotated target in parentheses."""
    text = """
        (rate): float = 0.1

        def step(optimizer: optim.Optimizer, grads, **options):
            optimizer = optimizer.apply_gradient(grads, **options)
            return optimizer.target
        """
    result = run(text, PARTIAL)
    assert result.after.decode() == program(text)
    assert {site.status for site in result.sites} == {"unresolved"}
    assert "FO919" in {site.code for site in result.sites}


SUPPRESSED = {
    "by its code": ("optim.Adam(1e-3)  # optim2optax: ignore[FO102]", True),
    "by its family": ("optim.Adam(1e-3)  # optim2optax: ignore[FO1]", True),
    "by one of several codes": ("optim.Adam(1e-3)  # optim2optax: ignore[FO999, FO102]", True),
    "in small letters": ("optim.Adam(1e-3)  # optim2optax: ignore[fo102]", True),
    "whatever it is": ("optim.Adam(1e-3)  # optim2optax: ignore", True),
    "after another comment": ("optim.Adam(1e-3)  # noqa  # optim2optax: ignore[FO102]", True),
    "on a line inside the call": ("optim.Adam(\n    1e-3,  # optim2optax: ignore[FO102]\n)", True),
    "another code": ("optim.Adam(1e-3)  # optim2optax: ignore[FO202]", False),
    "a comment about something else": ("optim.Adam(1e-3)  # optim: ignore", False),
    "text that is no comment": ("optim.Adam(1e-3), '# optim2optax: ignore'", False),
    "a line above": ("3  # optim2optax: ignore\nd = optim.Adam(1e-3)", False),
}  # fmt: skip


@pytest.mark.parametrize(("text", "suppressed"), SUPPRESSED.values(), ids=SUPPRESSED)
def test_suppression(text: str, suppressed: bool) -> None:
    result = run(f"from flax import optim\n\nd = {text}\n".encode())

    assert (
        b"optim.Adam(1e-3" not in result.after.replace(b"\n    ", b"")
    ) != suppressed
    assert result.changed != suppressed
    is_unused = not suppressed and "# optim2optax: ignore" in text.replace("'#", "")
    assert result.unused_suppressions == ((3,) if is_unused else ())


def test_what_a_comment_keeps_is_not_half_migrated_by_partial_work() -> None:
    text = program("""
        from flax import optim

        def two(params):
            kept = optim.Momentum(0.1).create(params)  # optim2optax: ignore
            other = optim.Momentum(0.1).create(params)
            return kept.target, other.target
        """)
    after = run(text, PARTIAL).after.decode()
    assert "kept = optim.Momentum(0.1).create(params)  # optim2optax: ignore\n" in after
    assert "return kept.target, other.params\n" in after


READ = """
    def read(params):
        return optim.Adam(1e-3).create(params).target
    """


@pytest.mark.parametrize(
    ("options", "changed"),
    [
        pytest.param(Options(), True, id="everything by default"),
        pytest.param(Options(select=("FO1", "FO2")), True, id="all that it needs is selected"),
        pytest.param(Options(ignore=("FO3", "FO206")), True, id="nothing that it needs is ignored"),
        pytest.param(Options(select=("FO2",)), False, id="the constructor is not selected"),
        pytest.param(Options(select=("FO",), ignore=("FO202",)), False, id="ignore outweighs select",),
        pytest.param(Options(ignore=("FO202",), partial=True), True, id="but for partial work"),
    ],
)  # fmt: skip
def test_select_and_ignore(options: Options, changed: bool) -> None:
    result = run(READ, options)
    assert result.changed == changed
    assert changed or "suppressed" in {site.status for site in result.sites}


LIKELY = """
    import jax

    def evaluate(optimizer, batch):
        return batch.target, optimizer.target, optimizer.state.step
    """


def test_what_is_only_likely_is_shown_and_changed_on_demand() -> None:
    careful, bold = run(LIKELY), run(LIKELY, Options(unsafe=True))

    assert not careful.changed
    found = {(site.evidence, site.code) for site in careful.sites}
    assert found == {("likely", "FO912")}
    assert b"return batch.target, optimizer.params, optimizer.step" in bold.after


# 3. Nothing else is touched.

ODD = (
    "# coding: {coding}\n"
    "import jax\n"
    "\n"
    "\x0c\n"
    "def  step( optimizer ,grads ) :   # odd blanks stay\n"
    "\tx = {{'a' :1, \"b\": '''c''' ,}}  ;  y=0x1F;z = 1_000.\n"
    "\tif x :\n"
    "\t\tw = (x ,\n"
    "\n"
    "           y,  # caf\u00e9\n"
    "\t\t)\n"
    "\n"
    "   \n"
    "\treturn optimizer.apply_gradient( grads, )"
)


@pytest.mark.parametrize("newline", ["\n", "\r\n"], ids=["unix lines", "windows lines"])
@pytest.mark.parametrize(
    ("coding", "mark"),
    [("utf-8", b""), ("utf-8", b"\xef\xbb\xbf"), ("latin-1", b""), ("cp1252", b"")],
    ids=["utf-8", "utf-8 with a byte order mark", "latin-1", "cp1252"],
)
@pytest.mark.parametrize("end", ["", "\n", "\n\n\n", "\n# end"])
def test_every_other_byte_stays(
    newline: str, coding: str, mark: bytes, end: str
) -> None:
    text = (ODD.format(coding=coding) + end).replace("\n", newline)
    content = mark + text.encode(coding)
    result = run(content)

    assert result.error is None
    assert result.after == content.replace(
        b".apply_gradient( grads, )", b".apply_gradients( grads=grads, )"
    )


COLUMNS = {
    "letters of two bytes": "é = 'ü'; print(opt.target)",
    "wide letters": "print('日本語', opt.target, '語', opt.target)",
    "letters beyond the basic plane": "print('😀😀', opt.target)",
    "keys of a dict": "print({'ключ': opt.target})",
    "tabs": "print(\t'é',\topt.target)",
    "an f-string": "print(f'é {opt.target} ü {opt.target!r:>10}')",
    "a format inside an f-string": "print(f'{1:>{opt.target}}', opt.target)",
    "an f-string of several lines": 'print(f"""é\n  {opt.target}\nü {opt.target}""")',
    "joined f-strings": "print('ä' f'{opt.target}' f'ö{opt.target}')",
    "a debugging f-string, whose text changes with it": "print(f'é {opt.target[0]}')",
}


@pytest.mark.parametrize("text", COLUMNS.values(), ids=COLUMNS)
def test_columns_count_characters(text: str) -> None:
    content = f"import jax\ndef step(opt, grads):\n    opt = opt.apply_gradient(grads)\n    {text}\n"
    result = run(content)

    assert result.after.decode() == content.replace("opt.target", "opt.params").replace(
        "apply_gradient(grads)", "apply_gradients(grads=grads)"
    )
    lines = content.split("\n")
    for site in result.sites:
        if site.before == "opt.target" and '"""' not in text:
            assert lines[site.line - 1][site.column - 1 :].startswith("opt.target")


# 2. Every site is accounted for. 4. A second run changes nothing. 5. The result is valid.

PROJECT = {
    "read.py": READ,
    "likely.py": LIKELY,
    "use.py": """
        from moments import other
        from read import read
        import make

        print(other(None), read(None), make.train(None, {}, None))
        """,
}
for name, row in zip(
    ("make", "moments"), table(WHOLE_OR_NOTHING, values=2), strict=True
):
    PROJECT[f"{name}.py"] = before_and_after(str(row.values[1]))[0]
WAYS_TO_RUN = {
    "as it is": Options(),
    "--partial": PARTIAL,
    "--unsafe": Options(unsafe=True),
    "as chains": Options(form="chain"),
}
LEGACY = re.compile(
    r"flax\.optim\b|import optim\b|\boptim\.\w+|\.apply_gradient\b|\.target\b|\.state\.\w+"
)


def sources() -> list[Source]:
    return [Source(path, program(text).encode()) for path, text in PROJECT.items()]


@pytest.mark.parametrize("options", WAYS_TO_RUN.values(), ids=WAYS_TO_RUN)
def test_no_legacy_text_is_left_outside_of_the_report(options: Options) -> None:
    for result in migrate(sources(), replace(options, ignore=("FO706",))):
        sites = [site for site in result.sites if site.status != "rewritten"]
        text = re.sub(r"batch\.target", "", result.after.decode())
        for found in LEGACY.findall(re.sub(r"#.*", "", text)):
            assert any(found in site.before for site in sites), (result.path, found)


@pytest.mark.parametrize("options", WAYS_TO_RUN.values(), ids=WAYS_TO_RUN)
def test_a_second_run_changes_nothing(options: Options) -> None:
    first = migrate(sources(), options)
    second = migrate([Source(result.path, result.after) for result in first], options)

    assert [result.after for result in second] == [result.after for result in first]
    statuses = {site.status for result in second for site in result.sites}
    assert statuses <= {"unresolved", "suppressed"}
    for result in first:
        ast.parse(result.after)


def test_the_order_of_files_changes_nothing() -> None:
    """Each file is the first once and the last once, with the others before and behind it in either order."""
    files = sources()
    expected = {result.path: result for result in migrate(files)}
    for order in (files[number:] + files[:number] for number in range(len(files))):
        for one in (order, order[::-1]):
            assert {result.path: result for result in migrate(one)} == expected


def test_what_another_tool_found_not_to_be_the_same_stays() -> None:
    text = "from flax import optim\n\n\ndef train(params):\n    return optim.Adam(1e-3).create(params).target\n"
    places = frozenset({("train.py", 5, "optim.Adam(1e-3)")})
    unproven = replace(OPTAX_ALONE, unproven=places)
    result = run(text, unproven)
    assert not result.changed
    codes = [code for _, code in told(result, "unresolved")]
    assert codes == ["FO911", "FO901", "FO901", "FO920"]
    assert run(text.replace("1e-3", "1e-2"), unproven).changed


def test_a_file_that_the_parser_of_the_new_code_might_not_survive_stays() -> None:
    condition = " or ".join(f"a{number}" for number in range(1_100))
    result = run(f"wanted = {condition}\ndefinition = optim.Adam(1e-3)\n")
    assert not result.changed
    assert told(result, "unresolved") == [(1, "FO919"), (4, "FO919")]


def test_the_package_has_no_other_names() -> None:
    with pytest.raises(ImportError, match="rewrite"):
        from codemods import rewrite  # noqa: F401


def test_an_empty_project_and_an_empty_file() -> None:
    assert migrate([]) == []
    assert run(b"").after == b""


STATE_DICTS = {
    "the parameters by key": ("({'optimizer': it})['optimizer']['target']['w']", "({'optimizer': it})['optimizer']['params']['w']"),
    "the step by key, in the file's other quotes": ('(it)["state"]["step"]', '(it)["step"]'),
}  # fmt: skip


@pytest.mark.parametrize(("before", "after"), STATE_DICTS.values(), ids=STATE_DICTS)
def test_state_dicts(before: str, after: str) -> None:
    text = migrated(f"""
        from flax import optim, serialization

        def save(params):
            it = optim.Adam(0.1).create(params)
            return serialization.to_state_dict{before}
        """)
    assert text.endswith(f"return serialization.to_state_dict{after}\n")


def test_a_checkpoint_may_be_from_before_or_after() -> None:
    before, after = before_and_after("""
- from flax import optim
- from flax.training import checkpoints
-
  def load(params, directory):
-     optimizer = optim.Adam(0.1).create(params)
+     optimizer = train_state.TrainState.create(
+         apply_fn=None, params=params, tx=optax.adam(0.1)
+     )
      restored = checkpoints.restore_checkpoint(directory, None)
-     if "target" not in restored:
+     if {"target", "opt_state"}.isdisjoint(restored):
          raise ValueError(directory)
-     if 'target' in restored:
-         print(restored["state"]["step"])
-     return optimizer.replace(target=restored["target"])
+     if not {'target', 'opt_state'}.isdisjoint(restored):
+         print(step_of(restored))
+     return optimizer.replace(params=params_of(restored))
""")
    assert migrated(before).endswith(after)


READS = {
    "by a method": ("restored.get('target')", True),
    "of a part": ("restored.get('optimizer', {}).get('state', {}).get('step', 0)", True),
    "by a path": ("{k: v for k, v in flatten_dict(restored).items() if k[:2] == ('optimizer', 'target')}", True),
    "a state may be anything": ("restored.get('state'), restored.pop('state', None)", False),
}  # fmt: skip


@pytest.mark.parametrize(("read", "told"), READS.values(), ids=READS)
def test_another_way_to_read_a_checkpoint_is_told(read: str, told: bool) -> None:
    result = run(f"""
        from flax import optim
        from flax.training import checkpoints
        from flax.traverse_util import flatten_dict

        def load(params, directory):
            optimizer = optim.Adam(0.1).create(params)
            restored = checkpoints.restore_checkpoint(directory, None)
            return optimizer, {read}
        """)
    left = [site for site in result.sites if site.status != "rewritten"]
    assert [(site.code, site.line) for site in left] == [("FO906", 8)] * told
    assert "tx=optax.adam(0.1)" in result.after.decode()


def test_a_replaced_target_tells_a_legacy_optimizer() -> None:
    before, after = before_and_after("""
  import jax

  def load(train_state, restored, edge, params):
      edge = edge.replace(target=params)
-     restored = restored.optimizer.target
-     return edge, train_state.replace(optimizer=train_state.optimizer.replace(target=restored))
+     restored = restored.optimizer.params
+     return edge, train_state.replace(optimizer=train_state.optimizer.replace(params=restored))
""")
    result = run(before)

    assert result.after.decode() == after
    assert {site.evidence for site in result.sites} == {"deduced"}


@pytest.mark.parametrize(
    ("call", "told"),
    [
        ("jax.block_until_ready(optimizer)", False),
        ("print(optimizer)", False),
        ("checkpoint.Checkpoint('/tmp/run').save(optimizer)", False),
        ("dataclasses.is_dataclass(optimizer)", False),
        ("report(optimizer.target)", False),
        ("report(optimizer)", True),
        ("report(step=1, state={'best': optimizer})", True),
        ("report(optimizer.optimizer_def)", True),
        ("report(definition)", True),
        ("report(lambda: optimizer)", True),
        ("report.best = optimizer", True),
        ("report['best'] = [optimizer]", True),
        ("report([*{'best': optimizer}.values()])", True),
        ("report(*[optimizer])", True),
        ("report(optimizer)  # optim2optax: ignore[FO932]", False),
        ("jax.tree_util.tree_map(report, optimizer)", False),
    ],
)
def test_it_is_told_where_an_optimizer_leaves_the_view(call: str, told: bool) -> None:
    text = f"""
        import dataclasses
        import jax
        from clu import checkpoint
        from flax import optim
        from reports_of_ours import report

        def train(params):
            definition = optim.Adam(0.1)
            optimizer = definition.create(params)
            {call}
            return optimizer.target
        """
    result = run(text)
    assert {site.status for site in result.sites} == {"rewritten"}
    hints = [(hint.code, hint.line) for hint in result.hints]
    assert hints == [("FO932", 10)] * told
    for hint in result.hints:
        assert "goes out of view here, to `report`: it is" in hint.message


def test_nothing_is_told_of_an_element_that_a_condition_on_its_key_chooses() -> None:
    result = run("""
        import jax.numpy as jnp
        from flax import optim
        from reports_of_ours import report

        def train(params):
            optimizer = optim.Adam(0.1).create(params)
            metrics = {"optimizer": optimizer, "loss": jnp.mean(optimizer.target)}
            for key in metrics:
                if key.startswith("loss"):
                    report(key, metrics[key])
            return optimizer.target
        """)
    assert {site.status for site in result.sites} == {"rewritten"}
    assert not [hint for hint in result.hints if hint.code == "FO932"]


@pytest.mark.parametrize("quote", ["", '"'])
def test_a_method_that_makes_a_state_keeps_its_form(quote: str) -> None:
    before = f"""
        class Trainer:
            def __init__(self, params):
                self.optimizer = optim.Adagrad(0.1).create(params)

            def changed(self, state: {quote}optim.OptimizerState{quote}):
                return optim.OptimizerState(state.step, {{"w": optim.adagrad._AdagradParamState(state.param_states["w"].G / 2)}})

            def restart(self):
                self.optimizer = self.optimizer.replace(state=self.changed(self.optimizer.state))
        """
    after = run(before).after.decode()
    assert f"def changed(self, state: {quote}OptimizerState{quote}):" in after
    assert (
        'return OptimizerState(state.step, {"w": AdagradParamState(state.param_states["w"].G / 2)})'
        in after
    )
    assert "replace(opt_state=self.changed(self.optimizer.opt_state))" in after
    assert "optim.Optimizer" not in after


@pytest.mark.parametrize("code", ["", "[FO8]"])
def test_a_comment_for_what_modernize_would_change_is_in_use(code: str) -> None:
    text = (
        "import jax\nfrom flax import optim\n\nd = optim.Adam(1e-3)\n"
        f"x = jax.tree_map(abs, 3)  # optim2optax: ignore{code}\n"
    )
    assert run(text.encode()).unused_suppressions == ()
