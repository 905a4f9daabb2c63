"""What becomes of declared dependencies.

The application does it and refuses it, as the code of a program has no part in it.
"""

from __future__ import annotations

from codemods.rules import describe

ADDED = describe(
    "FO851",
    "optax is declared beside Flax",
    """The new code imports optax. Where Flax is declared and optax is not, it is added: in the same
    list, in the manner of its neighbours, and with the lowest version that has all that the new
    code uses if they have versions, too.

    Nothing is added to constraints, and nothing where the requirements that are always installed,
    or an included file, have optax already.""",
    before="flax==0.3.4\n",
    after="flax>=0.8.0\noptax>=0.2.4\n",
)
RAISED = describe(
    "FO852",
    "a version that is too old for the new code is raised",
    """The new code needs optax 0.2.4, and with it JAX and jaxlib 0.4.27, Flax 0.8.0 and what these
    need, such as NumPy 1.24.1. A declared version that excludes all of these from the lowest on
    becomes `>=` the lowest. One that admits any stays as it is. A local version such as `+cuda111`
    goes with the version that it belongs to.

    What `--modernize` writes in the place of a removed name may be there since a later version
    only: `jax.enable_x64` since JAX 0.8. Then that is the lowest, and what is declared gets it as
    its lower end even if it admits later ones. What that JAX asks for in turn is raised with
    it.""",
    before="jax>=0.2.5,<0.3\n",
    after="jax>=0.4.27\n",
)
PYTHON = describe(
    "FO853",
    "the Python version is raised",
    """optax 0.2.4 needs Python 3.9, and JAX Python 3.10 since 0.4.31 and 3.11 since 0.7.0. A
    declared version that excludes what the code needs is raised: `python_requires`,
    `requires-python`, and the `python` of Poetry. In `pyproject.toml` the lower
    end is raised, too, as Poetry, uv and PDM look for versions of all packages that fit each Python
    that the project admits.""",
    before='requires-python = ">=3.7"\n',
    after='requires-python = ">=3.9"\n',
)
EXTRA = describe(
    "FO854",
    "an extra of JAX that has another name",
    """`jax[cuda12_pip]` is `jax[cuda12]`: JAX with the CUDA 12 that is installed as packages.""",
    before="jax[cuda12_pip]>=0.4.30\n",
    after="jax[cuda12]>=0.4.30\n",
)
LOCKED = describe(
    "FO950",
    "a lock file has older versions",
    """A lock file is made by a tool from what is declared, and is not edited. It has no optax, or
    versions that are too old for the new code: have the tool lock anew.""",
)
DIRECT = describe(
    "FO951",
    "a dependency comes from a place of its own",
    """A repository, a URL or a folder says nothing of the version that comes from there.""",
)
HASHED = describe(
    "FO952",
    "a dependency has hashes",
    """Hashes belong to the files of one version. Whatever has made them can make those of
    another.""",
)
NO_EXTRA = describe(
    "FO953",
    "an extra that JAX no longer has",
    """pip installs JAX without an extra that it does not have, and only warns: without CUDA, JAX
    computes on the CPU. Which one is right today depends on the driver of the machine: `cuda12` or
    `cuda13`, which bring CUDA with them, or `cuda12-local` and `cuda13-local` for one that is
    installed.""",
)
NOT_READ = describe(
    "FO954",
    "a declaration that is not understood",
    """What is computed, has a form of its own or cannot be parsed stays as it is.""",
)
TOLD = describe(
    "FO955",
    "a file that is not edited installs older versions",
    """A Dockerfile, an `environment.yml` of conda or a `Pipfile` installs versions that are too old
    for the new code, or Flax without optax, or begins with the image of an older Python. Each line
    is told. What else such a file installs, and what fits to that, is not known here.""",
)
