"""What the catalogue tells of rules and reasons."""

from codemods.rules import Rule, catalogue


def test_rules_and_reasons_stand_in_the_order_of_their_codes() -> None:
    assert list(catalogue()) == sorted(catalogue())
    assert all(rule.code == code for code, rule in catalogue().items())


def test_explanations_are_paragraphs_of_one_line_each() -> None:
    for rule in catalogue().values():
        for paragraph in rule.explanation.split("\n\n"):
            assert paragraph == " ".join(paragraph.split())
    first, second = catalogue()["FO701"].explanation.split("\n\n")
    assert first.startswith(
        "A class that derives from `OptimizerDef` keeps its methods"
    )
    assert first.endswith("and `optax.chain(clip, Sign(0.1))` accept it.")
    assert second.startswith("A class that derives from another optimizer")
    assert second.endswith("`state_dict` of its own stays, with a reason.")


def test_a_rule_has_an_example_or_none() -> None:
    found = catalogue()["FO205"]
    assert found.summary == "replace(target=…) is replace(params=…)"
    assert found.before == "optimizer = optimizer.replace(target=pretrained)\n"
    assert found.after == "optimizer = optimizer.replace(params=pretrained)\n"
    assert (catalogue()["FO212"].before, catalogue()["FO212"].after) == ("", "")


def test_a_reason_decides_on_nothing() -> None:
    reason = catalogue()["FO902"]
    said = "A `flax.optim` definition may be made without a learning rate if every"
    assert reason.explanation.startswith(said)
    assert reason == Rule("FO902", "no learning rate is known", reason.explanation)
    reasons = ("FO9", "FO897", "FO899", "FO85")
    for code, rule in catalogue().items():
        assert (rule.decide is None) == code.startswith(reasons)


def test_one_rule_decides_on_a_kind_of_use() -> None:
    kinds = [kind for rule in catalogue().values() for kind in rule.kinds]
    assert len(kinds) == len({*kinds})
    both = ("optimizer.state_dict", "optimizer.restore_state")
    assert catalogue()["FO603"].kinds == both
