"""What becomes of declared dependencies: the application does it and refuses it."""

from __future__ import annotations

from codemods.rules import describe

ADDED = describe(
    "FO851",
    "optax is declared beside Flax",
    """The new code imports optax. If Flax is declared and optax is not, optax is added: in the same
    list, in the style of its neighbours, and, if they have versions, with the lowest version that
    has everything that the new code uses. So is chex, if the code imports it: optax required it
    until 0.2.6.

    Nothing is added to constraints, or if the requirements that are always installed, or an
    included file, already have optax.""",
    before="flax==0.3.4\n",
    after="flax>=0.8.0\noptax>=0.2.4\n",
)
RAISED = describe(
    "FO852",
    "a version that is too old for the new code is raised",
    """The new code needs optax 0.2.4, and with it JAX and jaxlib 0.4.27, Flax 0.8.0 and what these
    need, such as NumPy 1.24.1. A declared version that excludes everything from the minimum on
    becomes `>=` the minimum. One that admits any of these stays as it is. A local version such as
    `+cuda111` is removed with its version.

    The replacement of a removed name may exist only since a later version: `jax.enable_x64` since
    JAX 0.8. If `--modernize` writes one, that version is the minimum, and the requirement gets it
    as its lower bound even if it admits later versions. The packages that this JAX needs are raised
    too.""",
    before="jax>=0.2.5,<0.3\n",
    after="jax>=0.4.27\n",
)
PYTHON = describe(
    "FO853",
    "the Python version is raised",
    """optax 0.2.4 needs Python 3.9, and JAX Python 3.10 since 0.4.31 and 3.11 since 0.7.0. A
    declared version that excludes what the code needs is raised: `python_requires`,
    `requires-python`, and the `python` of Poetry. In `pyproject.toml` the lower bound is raised
    too, because Poetry, uv and PDM need package versions for each Python that the project
    admits.""",
    before='requires-python = ">=3.7"\n',
    after='requires-python = ">=3.9"\n',
)
EXTRA = describe(
    "FO854",
    "a JAX extra with a new name",
    """`jax[cuda12_pip]` is now `jax[cuda12]`: JAX with CUDA 12 from pip packages.""",
    before="jax[cuda12_pip]>=0.4.30\n",
    after="jax[cuda12]>=0.4.30\n",
)
LOCKED = describe(
    "FO950",
    "a lock file has older versions",
    """A tool generates a lock file from the declared dependencies, so it is not edited. It lacks
    optax, or has versions that are too old for the new code: run the tool again.""",
)
DIRECT = describe(
    "FO951",
    "a dependency comes from a repository, a URL or a folder",
    """A repository, a URL or a folder does not show which version it has.""",
)
HASHED = describe(
    "FO952",
    "a dependency has hashes",
    """Hashes belong to the files of one version. Use the tool that generated them to generate those
    of another.""",
)
NO_EXTRA = describe(
    "FO953",
    "an extra that JAX no longer has",
    """If JAX does not have an extra, pip only warns and installs JAX without it: without CUDA, JAX
    computes on the CPU. The right extra depends on the driver of the machine: `cuda12` or `cuda13`,
    which bring CUDA with them, or `cuda12-local` and `cuda13-local` for one that is installed.""",
)
NOT_READ = describe(
    "FO954",
    "a declaration that is not understood",
    """Declarations that are computed, have an unusual form or cannot be parsed stay as they
    are.""",
)
TOLD = describe(
    "FO955",
    "a file that is not edited installs older versions",
    """A Dockerfile, an `environment.yml` of conda or a `Pipfile` installs versions that are too old
    for the new code, or Flax without optax, or starts from the image of an older Python; or a
    command of a CI workflow, a Makefile, a script or the README, or the list of `tox.ini` or
    `noxfile.py`, installs such versions. The report lists each line. It cannot know what else such
    a file installs, and which versions fit.""",
)
NAMED = describe(
    "FO956",
    "a configuration names flax.optim",
    """A configuration of gin, or in YAML as Hydra reads it, binds a class or function by its full
    name: `_target_: flax.optim.Adam`. What is bound may have other arguments and another use than
    the code that is rewritten, so the file is not edited, and each line is reported.""",
)
