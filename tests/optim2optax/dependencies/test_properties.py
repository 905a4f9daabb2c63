"""Requirements of all forms: what comes out can be installed with the new code, and is read as what it was."""

import re

from hypothesis import given
from hypothesis import strategies as st
from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

from codemods.vocabulary import words
from optim2optax.dependencies.needs import LOWEST
from optim2optax.dependencies.versions import admits
from tests.optim2optax.dependencies.files import result_of

NAMES = st.sampled_from(
    [*words("flax Flax jax jaxlib optax numpy clu jax-md typing_extensions")]
)
RELEASES = st.lists(st.integers(0, 30).map(str), min_size=1, max_size=4).map(".".join)
ENDS = st.sampled_from(["", "", "", "rc1", ".post2", ".dev0"])
VERSIONS = st.builds("{}{}".format, RELEASES, ENDS)
OPERATORS = st.sampled_from(["==", ">=", "<=", "<", ">", "!=", "~="])
CLAUSES = st.builds("{}{}{}".format, OPERATORS, st.sampled_from(["", " "]), VERSIONS)
SPECS = st.lists(CLAUSES, max_size=3).map(",".join)
EXTRAS = st.sampled_from(["", "", "[cpu]", "[cuda12_pip]", "[cuda111]", " [tpu, cpu]"])
MARKERS = st.sampled_from(["", "; python_version < '3.8'", ' ;sys_platform=="linux"'])
BEHIND = st.sampled_from(
    ["", " ", "  # see #3", " \\\n --no-binary :all:", " --hash=sha256:0a1"]
)
BLANK = st.sampled_from(["", " "])
LINES = st.builds("{}{}{}{}{}{}".format, NAMES, EXTRAS, BLANK, SPECS, MARKERS, BEHIND)
OPTIONS = ["-r other.txt", "-f ./x", "-e .", "./flax", "flax @ file:///x"]
OTHERS = st.sampled_from(["", "# flax==0.3.4", *OPTIONS, "\t", "jax[cpu", "é==1"])
FILES = st.builds(
    lambda lines, end, last: ("\n".join(lines) + last).replace("\n", end),
    st.lists(st.one_of(LINES, OTHERS), max_size=6),
    st.sampled_from(["\n", "\r\n"]),
    st.sampled_from(["", "\n"]),
)


@given(FILES)
def test_nothing_but_versions_extras_and_optax_changes(content: str) -> None:
    result = result_of("requirements.txt", content)
    after = result.after.decode()
    if ("FO851", "rewritten") in [(site.code, site.status) for site in result.sites]:
        after = re.sub(r"(?m)^optax( ?>= ?0\.2\.4)?(?:\r?\n|\Z)", "", after, count=1)
    assert skeleton(after).rstrip("\r\n") == skeleton(content).rstrip("\r\n")


@given(NAMES, EXTRAS, SPECS, MARKERS)
def test_a_requirement_admits_what_is_needed(
    name: str, extras: str, spec: str, marker: str
) -> None:
    content = f"{name}{extras}{spec}{marker}\njax\n"
    result = result_of("requirements.txt", content)
    before, after = requirement(content), requirement(result.after.decode())
    if before is None or any(site.code == "FO954" for site in result.sites):
        return
    assert after is not None
    assert (after.name, after.marker) == (before.name, before.marker)
    lowest = LOWEST.get(canonicalize_name(name))
    if lowest is not None:
        assert admits(str(after.specifier), lowest, "pep440")
        assert after.specifier in (before.specifier, SpecifierSet(f">={lowest}"))


@given(SPECS, VERSIONS, VERSIONS)
def test_a_version_that_is_admitted_is_seen(
    spec: str, lowest: str, version: str
) -> None:
    """`admits` may not say that nothing fits where something does."""
    try:
        specifier = SpecifierSet(spec)
    except ValueError:
        return
    fits = specifier.contains(version, prereleases=True)
    if fits and Version(version) >= Version(lowest):
        assert admits(spec, lowest, "pep440")


PATHS = words("setup.cfg requirements.txt Dockerfile Pipfile environment.yml")


@given(st.text(max_size=60), st.sampled_from([*PATHS]))
def test_any_text(content: str, path: str) -> None:
    result_of(path, f"{content}\njax flax".encode("utf-8", "replace"))


def requirement(content: str) -> Requirement | None:
    try:
        return Requirement(content.splitlines()[0])
    except InvalidRequirement:
        return None


def skeleton(content: str) -> str:
    """A text without versions of requirements and names of extras."""
    changing = r"(?:[<>=!~]=|[<>]) ?[\w.]+,?|cuda12(?:_pip)?| (?=[<>=!~])"
    return re.sub(changing, "", content)
