"""What is found about made-up laws and states: maps, the part of each feature, fitted rules."""

from __future__ import annotations

import numpy as np
import pytest

from queue_env import scenario
from queue_env.explain import FORMS, AnchorLaw, States, anchor_law, distill, effects, rate_map
from queue_env.network import NAMES, Network
from queue_env.plan import make_plan

AXES = ("anchor_size", "others_work")
PAIRS = ("anchor_size", "others_work", "anchor_remaining", "next_remaining")


def made_states(count: int = 4000) -> States:
    features = np.abs(np.random.default_rng(1).normal(1.0, 1.0, (count, len(NAMES))))
    return States(features, np.zeros(count), count)


def law(network: Network, label: str = "net") -> AnchorLaw:
    return AnchorLaw(label, network.features, network.rates, network)


# ---- maps ----------------------------------------------------------------------------------------


def test_a_map_of_a_law_of_other_features_is_at_their_medians() -> None:
    states = made_states()
    states.features[:, NAMES.index("crowd")] = states.features[:, 0] ** 2  # which the map must find from the anchor
    network = Network(("crowd",), ([[1.0]],), ([-2.0],))
    found = rate_map(states, [law(network)], AXES)
    rates = found.rates["net"]
    assert found.visits.sum() > 0.95 * len(states.rates)
    np.testing.assert_array_equal(np.isnan(rates), ~found.visited)
    middles = np.log1p(np.sqrt(found.edges[0][1:] * found.edges[0][:-1]))
    expected = np.broadcast_to(network.rates(middles[:, None] ** 2), rates.shape)
    assert np.nanmax(np.abs(rates - expected)) < 0.05
    np.testing.assert_allclose(found.mean[found.visited], rates[found.visited], atol=0.05)


def test_a_law_of_the_axes_has_rates_in_all_cells() -> None:
    model = scenario("high-load-2")
    settings = make_plan(model, ["backlog-split:b=2,kappa=0.5", "dynasplit"]).settings
    laws = [anchor_law(one, model.sizes.mean) for one in settings]
    found = rate_map(made_states(), laws, AXES)
    z, b = (np.sqrt(ends[1:] * ends[:-1]) for ends in found.edges)
    np.testing.assert_array_equal(found.rates["backlog-split:b=2,kappa=0.5"], b[:, None] <= 2 * z[None, :] ** 0.5)
    gamma = 0.4 - 0.4 / (2 + np.log1p(z))
    np.testing.assert_allclose(found.rates["dynasplit"], np.broadcast_to(gamma, (len(b), len(z))))
    assert not found.visited.all()


def test_no_crowded_states_at_all() -> None:
    nothing = States(np.empty((0, len(NAMES))), np.empty(0), 10)
    with pytest.raises(ValueError, match="in no state that was looked at more jobs than servers are present"):
        rate_map(nothing, [], AXES)


# ---- features ------------------------------------------------------------------------------------


def test_effects_of_a_logistic_rule() -> None:
    network = Network(("load", "crowd", "anchor_age"), ([[0.0, 0.5, -2.0]],), ([0.0],))
    found = effects(law(network), made_states())
    assert [effect.feature for effect in found] == ["anchor_age", "crowd", "load"]
    np.testing.assert_allclose([effect.slope for effect in found], [-2.0, 0.5, 0.0], atol=1e-9)
    assert found[2].importance == 0.0
    assert found[0].importance > 2 * found[1].importance > 0.1


def test_effects_of_a_law_that_is_no_network() -> None:
    step = AnchorLaw("step", ("others_work",), lambda x: np.where(x[:, 0] < 1.0, 1.0, 0.0))
    (effect,) = effects(step, made_states())
    assert effect.slope is None
    share = float(np.mean(made_states().columns(["others_work"]) < 1.0))
    assert effect.importance == pytest.approx(2 * share * (1 - share), abs=0.03)


# ---- rules ---------------------------------------------------------------------------------------

KNOWN = {"logistic": [1.0, 0.6, -1.5, -0.7], "either": [2.5, 3.2, 0.4, 0.5, -1.3, 3.5, 0.2, -1.1]}


@pytest.mark.parametrize("form", FORMS)
def test_a_rule_of_its_form_is_found_again(form: str) -> None:
    known = FORMS[form].network(np.array(KNOWN[form]))
    rule = distill(law(known), made_states(), form, servers=2)
    assert rule.r2 is not None
    assert rule.r2 > 0.9999
    assert rule.difference < 2e-3
    np.testing.assert_allclose(rule.parameters, KNOWN[form], rtol=0.1, atol=0.1)


def test_rules_in_words() -> None:
    one, two = (distill(law(FORMS[f].network(np.array(KNOWN[f]))), made_states(), f, 2) for f in ("logistic", "either"))
    assert one.formula.startswith("1 + 0.6 ln(1+z) - 1.5 ln(1+b) - 0.7 ln((1+r)/(1+p))")
    assert one.words == "rate above 1/2 where 1+b < 1.95 (1+z)^0.4 ((1+r)/(1+p))^-0.47"
    assert "tanh(" in two.formula
    assert "1.00 with A and B, 0.90 with A only, 0.94 with B only, 0.01 with neither" in two.words


def test_a_rule_may_have_its_signs_turned() -> None:
    turned = np.array([2.5, -3.2, -0.4, -0.5, 1.3, -3.5, -0.2, 1.1])
    assert FORMS["either"].words(turned) == FORMS["either"].words(np.array(KNOWN["either"]))


@pytest.mark.parametrize("form", FORMS)
def test_a_rate_that_does_not_vary(form: str) -> None:
    constant = AnchorLaw("split", (), lambda x: np.ones(len(x)))
    rule = distill(constant, made_states(), form, servers=4)
    assert rule.r2 is None
    assert rule.difference < 1e-2
    assert rule.words == "its rate is never on both sides of 1/2"


def test_what_is_frequent_counts_for_more() -> None:
    """Two kinds of states in which no logistic rule of these features can have both rates."""
    states = made_states(1000)
    states.features[:] = 1.0
    rates = np.repeat([0.9, 0.2], [900, 100])
    rule = distill(AnchorLaw("mixed", (), lambda _: rates), states, "logistic", servers=2)
    np.testing.assert_allclose(rule.network.rates(states.columns(PAIRS)), np.mean(rates), atol=1e-3)
