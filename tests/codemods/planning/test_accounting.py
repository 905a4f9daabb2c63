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
    results = migrate(sources, options)
    return {
        Location(result.path, site.line): site
        for result in results
        for site in result.sites
    }


def test_sites_of_one_optimizer_have_one_group() -> None:
    found = sites(Options())
    adam, momentum = Location("train.py", 5), Location("train.py", 12)
    assert {where for where, site in found.items() if site.group == adam} == {
        adam,
        Location("steps.py", 2),
        Location("steps.py", 3),
    }
    assert {where for where, site in found.items() if site.group == momentum} == {
        momentum,
        Location("train.py", 13),
    }
    assert found[Location("train.py", 1)].group is None


def test_the_way_is_from_the_allocation_site_through_the_calls() -> None:
    step = Location("steps.py", 3)
    assert sites(Options(trace=True))[step].way == (
        Location("train.py", 5),
        Location("train.py", 8),
        Location("train.py", 9),
    )
    assert sites(Options())[step].way == ()
