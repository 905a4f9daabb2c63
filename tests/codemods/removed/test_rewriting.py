"""What else has been removed since: untouched without the option, then each kind of use, in whole programs."""

from typing import Any

import pytest

from codemods import FileResult, Options, Source, migrate

MODERNIZE = Options(modernize=True)
UNTOUCHED = {
    "a method of the same name": "import jax\n\ntree.tree_map(f)\nself.host_id()\n",
    "a variable that hides the module": "import jax\n\ndef f(jax):\n    return jax.tree_map\n",
    "another package's": "import jax\nimport tree\n\ntree.map_structure(f, x)\nfrom lab import partial\n",
    "what is still there": "import jax\n\njax.tree_util.tree_map(f, x)\njax.tree.map(f, x)\njax.config.update('a', 1)\n",
    "NumPy's own scalars": "import jax\nimport numpy as np\n\nnp.bool_, np.float32, np.int64, np.str_\n",
    "a name that code does without": (
        "import jax\n\ntry:\n    f = jax.tree_map\nexcept (AttributeError, KeyError):\n    f = jax.tree.map\n"
    ),
    "an import that code does without": (
        "try:\n    from jax import tree_map\nexcept:\n    from jax.tree import map as tree_map\n"
    ),
    "keys": "import jax\n\nkey = jax.random.PRNGKey(0)\n",
    "a pop of one value": "import flax\n\nparams = variables.pop('params')\n",
    "values in annotations": (
        "import numpy as np\nfrom typing import Annotated, Literal\n\n"
        "def f(x: Literal['np.int'], y: 'Literal[\"np.int\"]', z: Annotated['np.int32', 'np.int']): ...\n"
    ),
    "another name in quotes": (
        "import numpy as np\n\ndef f(x: 'np.int32', y: 'self.np.int', z: 'np.integer') -> 'np': ...\n"
    ),
    "a name of one's own in quotes": "import jax\n\ndef f(np, x: 'np.int') -> 'np.int': ...\n",
    "arguments by position, or of NumPy": (
        "import jax.numpy as jnp\nimport numpy as np\n\njnp.clip(x, 0, 1), np.clip(x, a_min=0, a_max=1)\n"
    ),
    "cells with features": (
        "from flax import linen as nn\n\nnn.GRUCell(features=3), nn.LSTMCell(3), nn.GRUCell(**options)\n"
    ),
    "other collections": "import collections\nfrom collections import deque\n\ncollections.OrderedDict(), deque()\n",
    "copies of dicts and arrays": "import flax\n\nx.copy(), x.copy(y), x.copy(order='C'), x.copy({'a': 1})\n",
    "what unfreezes itself": "import flax\n\nlayer.unfreeze()\n",
    "methods of one's own": (
        "import flax\n\nclass Layer:\n    def unfreeze(self): ...\n    def copy(self, x): ...\n\n"
        "x = Layer().unfreeze(), Layer().copy({'params': 1})\n"
    ),
    "functions of Flax": (
        "import flax\nfrom flax.core import frozen_dict\n\nflax.core.unfreeze(x), frozen_dict.copy(x, {'params': 1})\n"
    ),
    "a pop of another pair": "import flax\n\nfirst, second = pairs.pop('x')\n",
}
RENAMED = {
    "functions of trees": (
        "import jax\n\njax.tree_map(f, jax.tree_leaves(x))\njax.tree_multimap(f, x, y)\n",
        "import jax\n\njax.tree.map(f, jax.tree.leaves(x))\njax.tree.map(f, x, y)\n",
    ),
    "under another name of jax": ("import jax as j\n\nj.tree_map(f, x)\n", "import jax as j\n\nj.tree.map(f, x)\n"),
    "imported functions": (
        "from jax import jit, tree_map\n\njit(tree_map)\n",
        "from jax import jit\nfrom jax.tree_util import tree_map\n\njit(tree_map)\n",
    ),
    "the configuration, used in the same line": (
        "from jax.config import config; config.update('jax_enable_x64', True)\n\nimport jax\nfrom jax import jit\n",
        "from jax import config; config.update('jax_enable_x64', True)\n\nimport jax\nfrom jax import jit\n",
    ),
    "partial": (
        "import jax\n\nf = jax.jit(jax.partial(g, 1))\n",
        "import functools\n\nimport jax\n\nf = jax.jit(functools.partial(g, 1))\n",
    ),
    "updates at an index": (
        "import jax\n\nx = jax.numpy.zeros((2, 2))\nx = jax.ops.index_update(x, jax.ops.index[0, :], jax.tree_map(f, y))\n",
        "import jax\n\nx = jax.numpy.zeros((2, 2))\nx = x.at[0, :].set(jax.tree.map(f, y))\n",
    ),
    "updates at an index of what another update gave": (
        "import jax\n\nx = jax.random.normal(key, (3,)).at[0].add(1)\nx = jax.ops.index_add(-1 * x, i, 1)\n",
        "import jax\n\nx = jax.random.normal(key, (3,)).at[0].add(1)\nx = (-1 * x).at[i].add(1)\n",
    ),
    "updates at an index of what may be anything": (
        "import jax\n\nx = jax.ops.index_update(y, 0, z)\nx = jax.ops.index_add(z.T, i, 1)\n",
        "import jax\n\nx = jax.numpy.asarray(y).at[0].set(z)\nx = jax.numpy.asarray(z.T).at[i].add(1)\n",
    ),
    "updates at an index in all ways to give arguments": (
        (
            "import jax\n\nx = jax.ops.index_update(y, 0, z, indices_are_sorted=True)\n"
            "x = jax.ops.index_add(jax.lax.neg(x), i + 1, z, True, unique_indices=False)\n"
            "x = jax.ops.index_max(x=jax.lax.neg(x), idx=(0, 1), y=z)\n"
            "x = jax.ops.index_mul(jax.lax.neg(x), places[f'{name}'], y=z)\n"
        ),
        (
            "import jax\n\nx = jax.numpy.asarray(y).at[0].set(z, indices_are_sorted=True)\n"
            "x = jax.lax.neg(x).at[i + 1].add(z, indices_are_sorted=True, unique_indices=False)\n"
            "x = jax.lax.neg(x).at[(0, 1)].max(values=z)\n"
            "x = jax.lax.neg(x).at[places[f'{name}']].multiply(values=z)\n"
        ),
    ),
    "updates at an index in several lines": (
        (
            "import jax\n\nx = jax.ops.index_update(\n    jax.lax.neg(x), jax.ops.index[a:b,\n                c:d],  # a patch\n"
            "    y)\nx = jax.ops.index_add(jax.lax.neg(x), (0,\n    1), y)\n"
        ),
        (
            "import jax\n\n# a patch\nx = jax.lax.neg(x).at[a:b,\n                c:d].set(\n    y)\n"
            "x = jax.lax.neg(x).at[(0,\n    1)].add(y)\n"
        ),
    ),
    "where something else is handled": (
        (
            "import jax\n\ntry:\n    y = jax.tree_map(f, x)\nexcept Exception:\n    print('no y')\n"
            "try:\n    z = jax.tree_map(f, x)\nexcept ImportError:\n    z = x\n"
        ),
        (
            "import jax\n\ntry:\n    y = jax.tree.map(f, x)\nexcept Exception:\n    print('no y')\n"
            "try:\n    z = jax.tree.map(f, x)\nexcept ImportError:\n    z = x\n"
        ),
    ),
    "an index of its own": ("import jax\n\nindex = jax.ops.index[0]\n", "import jax\n\nindex = jax.numpy.s_[0]\n"),
    "keywords": (
        (
            "import jax\nimport jax.numpy as jnp\nfrom jax.numpy import clip\n\n"
            "y = jnp.clip(x, a_min=low,  # the least\n             a_max=jax.tree_map(f, z))\n"
            "y = clip(a=y, a_max=1) + jnp.percentile(y, 5, interpolation='nearest')\n"
        ),
        (
            "import jax\nimport jax.numpy as jnp\nfrom jax.numpy import clip\n\n"
            "y = jnp.clip(x, min=low,  # the least\n             max=jax.tree.map(f, z))\n"
            "y = clip(arr=y, max=1) + jnp.percentile(y, 5, method='nearest')\n"
        ),
    ),
    "what only a frozen dict has": (
        (
            "import flax\n\nparams = state.params.unfreeze()\n"
            "state = state.replace(variables=variables.copy({'batch_stats': mean}))\n"
            "variables = (old or new).copy(add_or_replace=extra)\n"
            "params = params.copy({'head': old['params']['head']})\n"
            "params = old['params'].copy({'head': params['head']})\n"
        ),
        (
            "import flax\n\nparams = flax.core.unfreeze(state.params)\n"
            "state = state.replace(variables=flax.core.copy(variables, {'batch_stats': mean}))\n"
            "variables = flax.core.copy((old or new), extra)\n"
            "params = flax.core.copy(params, {'head': old['params']['head']})\n"
            "params = flax.core.copy(old['params'], {'head': params['head']})\n"
        ),
    ),
    "a module that is imported by its full name": (
        "import jax.experimental.stax\nimport jax.experimental.optimizers as opt\n\njax.experimental.stax.Dense, opt.adam\n",
        (
            "import jax.example_libraries.stax\nimport jax.example_libraries.optimizers as opt\n\n"
            "jax.example_libraries.stax.Dense, opt.adam\n"
        ),
    ),
    "a call of an imported module that is needed no more": (
        "import jax\nfrom jax.config import config\n\nif jax:\n    config.enable_omnistaging()\n    config.update('a', 1)\n",
        "import jax\nfrom jax import config\n\nif jax:\n    config.update('a', 1)\n",
    ),
    "a module that is an attribute now, under another name": (
        "import jax.config as settings\n\nsettings.update('a', 1)\n",
        "from jax import config as settings\n\nsettings.update('a', 1)\n",
    ),
    "a method of a function": (
        (
            "from jax.lib import xla_bridge\n\nxla_bridge.get_backend.cache_clear()\n"
            "print(xla_bridge.get_backend('cpu').platform)\n"
        ),
        (
            "import jax\nimport jax.extend\n\njax.extend.backend.clear_backends()\n"
            "print(jax.devices('cpu')[0].client.platform)\n"
        ),
    ),
    "the only imports of the package": (
        (
            "import jax.lib.xla_bridge\nimport jax.experimental.maps, jax.config\n\n"
            "jax.experimental.maps.Mesh(jax.lib.xla_bridge.get_backend()), jax.config\n"
        ),
        "import jax\n\njax.sharding.Mesh(jax.devices()[0].client), jax.config\n",
    ),
    "an import of the package that is out of reach": (
        "import jax.experimental.maps\n\njax.experimental.maps.Mesh\n\ndef f():\n    import jax\n    return jax\n",
        "import jax\n\njax.sharding.Mesh\n\ndef f():\n    import jax\n    return jax\n",
    ),
    "a constant before a power": (
        "import jax.numpy as jnp\n\nx = -jnp.NINF ** 2, f(jnp.NINF, y=jnp.NINF), jnp.NINF\n",
        "import jax.numpy as jnp\n\nx = -(-jnp.inf) ** 2, f(-jnp.inf, y=-jnp.inf), -jnp.inf\n",
    ),
    "a call that is one of its arguments, within more": (
        "from jax import lax\n\nx = lax.tie_in(x, a + b) * lax.tie_in(x, y) ** lax.tie_in(x, (a, b))[0]\nlax.add(x, x)\n",
        "from jax import lax\n\nx = (a + b) * y ** (a, b)[0]\nlax.add(x, x)\n",
    ),
    "a call that is one of its arguments": ("from jax import lax\n\ny = lax.tie_in(x, f(y)) + 1\n", "y = f(y) + 1\n"),
    "parts of annotations in quotes": (
        (
            "import jax\nimport jax.numpy as jnp\nfrom typing import *\n\n"
            "def f(x: Optional['jnp.DeviceArray'], *y: Dict['jnp.DeviceArray', 'jnp.ndarray']): ...\n"
            "def g(x: \"Optional['jnp.DeviceArray']\", y: Callable[['jnp.DeviceArray'], None]): ...\n"
        ),
        (
            "import jax\nimport jax.numpy as jnp\nfrom typing import *\n\n"
            "def f(x: Optional['jax.Array'], *y: Dict['jax.Array', 'jnp.ndarray']): ...\n"
            "def g(x: \"Optional['jax.Array']\", y: Callable[['jax.Array'], None]): ...\n"
        ),
    ),
    "an annotation in quotes with other names of the package": (
        "import numpy as np\n\ndef f(x: 'dict[np.int, np.ndarray]', y: 'np.int | np.float'): ...\n",
        "import numpy as np\n\ndef f(x: 'dict[int, np.ndarray]', y: 'int | float'): ...\n",
    ),
    "a cast": (
        "from typing import cast\n\nimport numpy as np\n\n\ndef f(x):\n    return cast('np.int', x), cast(\"np.int\", x)\n",
        "from typing import cast\n\n\ndef f(x):\n    return cast('int', x), cast(\"int\", x)\n",
    ),
    "beside an optimizer, in one annotation in quotes": (
        "import numpy as np\nfrom flax import optim\n\ndef f(x: 'dict[np.int, optim.Optimizer]'): ...\n",
        "from flax.training import train_state\n\ndef f(x: 'dict[int, train_state.TrainState]'): ...\n",
    ),
}  # fmt: skip
OMNISTAGING = "`jax.config.config.enable_omnistaging`"
GONE = {
    "an imported module": ("import jax.lib.xla_bridge\n", "`jax.lib.xla_bridge` was removed."),
    "a call that is needed no more, and is spoken of": (
        "import jax.tools.colab_tpu as tpu\n\nprint()\n# Finds the TPU.\ntpu.setup_tpu()\n",
        "`jax.tools.colab_tpu.setup_tpu` was removed.",
    ),
    "a call that is needed no more, with a value":
        ("from jax.config import config\n\nx = config.enable_omnistaging()\n", f"{OMNISTAGING} was removed."),
    "a call that is needed no more, beside another statement":
        ("from jax.config import config\n\nif x: config.enable_omnistaging(); y = 1\n", f"{OMNISTAGING} was removed."),
    "loops": ("from jax.experimental import loops\n\nloops\n", "`jax.experimental.loops` was removed."),
    "an update with an index that is unpacked":
        ("import jax\n\nx = jax.ops.index_update(x, *index, y)\n", "`jax.ops.index_update` was removed."),
    "an update with the index behind the values":
        ("import jax\n\nx = jax.ops.index_update(x, y=y, idx=0)\n", "`jax.ops.index_update` was removed."),
    "an update that is passed on":
        ("import jax\n\nx = functools.reduce(jax.ops.index_add, xs)\n", "`jax.ops.index_add` was removed."),
    "an imported update": ("from jax.ops import index_update\n\nindex_update\n", "`jax.ops.index_update` was removed."),
    "what has no other name, in quotes":
        ("import jax\n\ndef f(x: 'jax.lib.xla_extension.PjRtClient'): ...\n", "`jax.lib.xla_extension` was removed."),
    "an annotation of two strings":
        ("import numpy as np\n\ndef f(x: 'np.' 'int'): ...\n", "`numpy.int` is `builtins.int` now."),
    "a cell without features":
        ("from flax import linen as nn\n\ncell = nn.GRUCell(name='gru')\n", "`flax.linen.GRUCell()` needs `features` now."),
    "internals": ("from jax.lib import xla_bridge\n\nxla_bridge\n", "`jax.lib.xla_bridge` was removed."),
}  # fmt: skip


def told(result: FileResult) -> list[tuple[str, str]]:
    left = [site for site in result.sites if site.status == "unresolved"]
    return [(site.code, site.message) for site in left]


def run(program: str, options: Options = MODERNIZE) -> FileResult:
    [result] = migrate([Source("train.py", program.encode())], options)
    return result


@pytest.mark.parametrize("program", UNTOUCHED.values(), ids=UNTOUCHED)
def test_untouched(program: str) -> None:
    result = run(program)
    assert (result.after.decode(), result.sites) == (program, ())


@pytest.mark.parametrize(("before", "after"), RENAMED.values(), ids=RENAMED)
def test_renamed(before: str, after: str) -> None:
    result = run(before)
    assert result.after.decode() == after
    assert {site.status for site in result.sites} == {"rewritten"}
    again = run(after)
    assert (again.changed, again.sites) == (False, ())


UPDATED = {
    "an array of NumPy": "x = np.zeros(3)",
    "a list": "x = [0.0, 0.0, 0.0]",
    "an array that was fetched": "x = jax.device_get(jnp.zeros(3))",
    "an array of either": "x = np.zeros(3)\n    if len(x) > 3:\n        x = jnp.zeros(3)",
    "one of a tuple": "x, _ = np.zeros(3), jnp.zeros(3)",
    "one of a loop": "for x in (np.zeros(3),):\n        pass",
    "what a function gave": "x = np.asarray(jnp.zeros(3))",
    "an array of JAX, in a loop": "x = jnp.zeros(3)\n    for index in range(2):\n        x = jax.ops.index_add(x, index, 0.0)",
}


@pytest.mark.parametrize("makes", UPDATED.values(), ids=UPDATED)
def test_updates_at_an_index_of_anything_run(makes: str) -> None:
    imports = "import jax\nimport jax.numpy as jnp\nimport numpy as np\n\n"
    program = f"{imports}def run():\n    {makes}\n    return jax.ops.index_update(x, 1, 2.0)\n"
    module: dict[str, Any] = {}
    exec(run(program).after, module)
    assert module["run"]().tolist() == [0.0, 2.0, 0.0]


@pytest.mark.parametrize(("program", "message"), GONE.values(), ids=GONE)
def test_what_has_no_other_name_is_reported(program: str, message: str) -> None:
    result = run(program)
    assert not result.changed
    assert len(result.sites) == 1
    assert told(result) == [("FO899", message)]


def test_of_an_import_only_what_is_replaced_goes() -> None:
    head = "import jax\nfrom jax.lib import"
    uses = "xla_bridge.get_backend(), xla_client.Client"
    result = run(f"{head} xla_bridge, xla_client\n\n{uses}\n")
    after = f"{head} xla_client\n\njax.devices()[0].client, xla_client.Client\n"
    assert result.after.decode() == after
    assert told(result) == [("FO899", "`jax.lib.xla_client` was removed.")]


def test_a_type_that_is_compared_is_reported_and_its_import_moves() -> None:
    compared = "x = [y for y in z if type(y) is DeviceArray]\n"
    result = run(f"from jax.interpreters.xla import DeviceArray\n\n{compared}")
    after = f"from jax import Array as DeviceArray\n\n{compared}"
    assert result.after.decode() == after
    assert [site.line for site in result.sites if site.status == "unresolved"] == [3]


COMMENTED = "from jax import lax\n\ny = lax.tie_in(\n    x,  # first\n    y,\n)\n"
"""A call whose first argument goes, and with it the comment."""

LOST = "The rewritten file would not be valid: the comment `# first` would be lost."


def test_a_replacement_that_would_not_be_valid_stays_and_is_told() -> None:
    result = run(COMMENTED)
    assert not result.changed
    assert told(result) == [("FO919", LOST)]


BESIDE = {
    "a definition": ("o = optim.Adam(0.1)", "o = optax.adam(0.1)"),
    "an optimizer": (
        "def f(o: optim.Optimizer):\n    return o.target",
        "def f(o: train_state.TrainState):\n    return o.params",
    ),
}


@pytest.mark.parametrize(("before", "after"), BESIDE.values(), ids=BESIDE)
def test_it_keeps_no_optimizer_of_the_file(before: str, after: str) -> None:
    result = run(f"{COMMENTED}from flax import optim\n\n{before}\n")
    assert result.after.decode().endswith(f"\n\n{after}\n")
    assert COMMENTED.partition("\n\n")[2] in result.after.decode()
    assert told(result) == [("FO919", LOST)]


def test_where_the_optimizers_are_not_valid_either_all_stays() -> None:
    program = (
        f"{COMMENTED}from flax import optim\n\ndef scale_by_norm_ratio():\n    return 1\n\n"
        "def create(params):\n    return optim.LAMB(0.1).create(params)\n"
    )
    result = run(program)
    assert not result.changed
    assert {code for code, _ in told(result)} == {"FO919"}


STAYING = {
    "a function without another name": "jax.experimental.maps.xmap(f)",
    "the module itself": "f(jax.experimental.maps)",
    "a type in quotes": "x: 'jax.experimental.maps.xmap' = f",
    "in a block": "with f:\n    jax.experimental.maps.thread_resources",
}


@pytest.mark.parametrize("use", STAYING.values(), ids=STAYING)
def test_the_import_of_a_module_stays_with_what_is_left_of_it(use: str) -> None:
    head = "import jax.experimental.maps, os\n\nmesh = "
    result = run(f"{head}jax.experimental.maps.Mesh(os.name)\n{use}\n")
    assert result.after.decode() == f"{head}jax.sharding.Mesh(os.name)\n{use}\n"
    for code, message in told(result):
        assert code == "FO899"
        assert message.startswith("`jax.experimental.maps` was removed")
    assert len(told(result)) == 2


def test_the_import_of_a_module_stays_with_what_a_comment_keeps() -> None:
    use = "jax.experimental.maps.Mesh"
    kept = f"import jax.experimental.maps\n\n{use}  # optim2optax: ignore\n"
    result = run(f"{kept}{use}\n")
    assert result.after.decode().startswith(kept)
    statuses = [site.status for site in result.sites]
    assert statuses == ["suppressed", "suppressed", "rewritten"]


def test_where_the_name_means_something_else_it_stays() -> None:
    program = "import jax\n\ndef apply(x):\n    return jax.tree_map(abs, x)\n\ndef other(flax):\n    return flax\n"
    result = run(program)
    assert not result.changed
    [site] = result.sites
    assert (site.line, site.code, site.status) == (4, "FO918", "unresolved")


HINTED = """
import jax
from flax import nn, optim

class Model(nn.Module): ...

def make(params):
    return optim.Adam(0.1).create(jax.tree_map(f, params))
"""


def test_without_the_option_there_are_hints_beside_an_optimizer_alone() -> None:
    result = run(HINTED, Options())
    assert b"jax.tree_map" in result.after
    assert {site.status for site in result.sites} == {"rewritten"}
    hints = [(site.code, site.status, bool(site.remedy)) for site in result.hints]
    assert hints == [("FO897", "hint", True), ("FO801", "hint", False)]
    assert run("import jax\n\njax.tree_map(f, x)\n", Options()).hints == ()


def test_a_comment_keeps_it() -> None:
    result = run("import jax\n\njax.tree_map(f, x)  # optim2optax: ignore[FO801]\n")
    assert not result.changed
    assert [site.status for site in result.sites] == ["suppressed"]


UNKNOWN = {
    "a name of another module": ("jax.cond(f)", "`jax.cond` is not in JAX 0.12.0.", "It may be `jax.lax.cond`."),
    "a misspelt name":
        ("jax.process_indexs()", "`jax.process_indexs` is not in JAX 0.12.0.", "It may be `jax.process_index`."),
    "an imported name": ("from optax import sdg\nsdg", "`optax.sdg` is not in optax 0.2.8.", "Look up what was meant."),
    "a private name that is public, too": (
        "jax._src.numpy.lax_numpy.float32",
        "`jax._src.numpy.lax_numpy.float32` is private to JAX, which may change it in any release.",
        "It may be `jax.numpy.float32`.",
    ),
    "a private module, wherever it is used": (
        "from jax._src import api\napi.jit, api.FLAGS",
        "`jax._src.api` is private to JAX, which may change it in any release.",
        "Do without it, or pin the version.",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("use", "message", "remedy"), UNKNOWN.values(), ids=UNKNOWN)
def test_what_is_not_known_is_told(use: str, message: str, remedy: str) -> None:
    program = f"import jax\nimport numpy as np\n\n{use}\n"
    result = run(program)
    assert (result.after.decode(), result.sites) == (program, ())
    [site] = result.hints
    assert (site.code, site.status) == ("FO898", "hint")
    assert (site.message, site.remedy) == (message, remedy)
    assert run(program, Options()).hints == ()


KNOWN = {
    "what there is": "jax.lax.cond, jax.__version__, np.float96, np.random.rand().mean, jax.numpy.ndarray.anything",
    "what the file sets": "jax.cond = jax.lax.cond\njax.cond(f)",
    "what it does without": "try:\n    jax.cond\nexcept AttributeError:\n    pass",
    "another package": "import torch\ntorch.cond, torch._C",
    "what a comment speaks of": "jax.cond(f)  # optim2optax: ignore[FO898]",
}


@pytest.mark.parametrize("use", KNOWN.values(), ids=KNOWN)
def test_nothing_is_told_of_what_is_known(use: str) -> None:
    result = run(f"import jax\nimport numpy as np\n\n{use}\n")
    assert result.changed is False
    assert result.sites == ()
    assert result.hints == ()
    assert result.unused_suppressions == ()
