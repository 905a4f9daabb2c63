"""Of each site: which others migrate with it, for which it stays, and where its optimizer comes from."""

from textwrap import dedent

from codemods import Options, Source, migrate
from codemods.model import Location, Site

TRAIN = dedent("""\
    from flax import optim
    import steps

    def make(params):
        return optim.Adam(1e-3).create(params)

    def train(params, grads):
        optimizer = make(params)
        return steps.step(optimizer, grads)

    def tune(params, grads):
        other = optim.Momentum(0.1).create(params)
        return other.apply_gradient(grads)
    """)
STEPS = dedent("""\
    def step(optimizer, grads):
        print(getattr(optimizer, NAME))
        return optimizer.apply_gradient(grads)
    """)


def sites(options: Options) -> dict[Location, Site]:
    sources = [Source("train.py", TRAIN.encode()), Source("steps.py", STEPS.encode())]
    return {
        Location(result.path, site.line): site
        for result in migrate(sources, options)
        for site in result.sites
    }


def at(path: str, *lines: int) -> list[Location]:
    return [Location(path, line) for line in lines]


def test_sites_of_one_optimizer_have_one_group() -> None:
    found = sites(Options())
    imported, adam, momentum, step = at("train.py", 1, 5, 12, 13)
    groups = {adam: {adam, *at("steps.py", 2, 3)}, momentum: {momentum, step}}
    for group, places in groups.items():
        assert {where for where, site in found.items() if site.group == group} == places
    assert found[imported].group is None


def test_the_way_is_from_the_allocation_site_through_the_calls() -> None:
    [step] = at("steps.py", 3)
    assert [*sites(Options(trace=True))[step].way] == at("train.py", 5, 8, 9)
    assert sites(Options())[step].way == ()
