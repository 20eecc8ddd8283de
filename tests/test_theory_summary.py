"""Load regimes, the tail bound, and which closed forms are listed for which scenario."""

from __future__ import annotations

import math

import numpy as np
import pytest

from queue_env import theory
from queue_env.scenarios import SCENARIOS, Scenario, scenario
from queue_env.theory import TheoryValue

PARETO = {"law": "pareto", "alpha": 1.5, "mean": 1.0}
EXPONENTIAL = {"law": "exponential", "mean": 1.0}


def listed(model: Scenario) -> dict[tuple[str, str, str], TheoryValue]:
    """The values of a scenario by (policy, quantity, kind); no two may share a key."""
    values = theory.applicable(model)
    found: dict[tuple[str, str, str], TheoryValue] = {(v.policy, v.quantity, v.kind): v for v in values}
    assert len(found) == len(values)
    return found


@pytest.mark.parametrize(
    ("servers", "load", "expected"),
    [
        (1, 0.01, "high"),
        (2, 0.5, "high"),
        (2, 0.499, "lower"),
        (7, 6 / 7, "high"),
        (10, 0.9, "high"),
        (10_000, 1 - 1e-4, "high"),
        (4, 0.6, "lower"),
        (2, 0.999, "high"),
    ],
)
def test_regime_below_overload(servers: int, load: float, expected: str) -> None:
    assert theory.regime(scenario({"servers": servers, "load": load, "sizes": PARETO})) == expected


@pytest.mark.parametrize("load", [1.0, 1.2])
def test_regime_of_overload(load: float) -> None:
    assert theory.regime(scenario("impatient-100", load=load)) == "overload"


def test_tail_bound_of_pareto_sizes() -> None:
    """high-load-2: δ = 0.4 and F̄(x) = (3x)^-1.5 for x ≥ 1/3; low-load-4: δ = 1.6, so c = 1."""
    times = np.array([[0.0, 0.5], [10.0, 1e6]])
    high = theory.tail_lower_bound(scenario("high-load-2"), times)
    assert high == pytest.approx(np.array([[1.0, 1.0], [12.0**-1.5, 1.2e6**-1.5]]), rel=1e-12)
    low = theory.tail_lower_bound(scenario("low-load-4"), times)
    assert low == pytest.approx(np.array([[1.0, 1.5**-1.5], [30.0**-1.5, 3e6**-1.5]]), rel=1e-12)


def test_tail_bound_refuses_what_it_does_not_cover() -> None:
    with pytest.raises(ValueError, match=r"load of the scenario must be below 1, got 1\.2"):
        theory.tail_lower_bound(scenario("impatient-100"), 1.0)
    with pytest.raises(ValueError, match="patience of the scenario must be None"):
        theory.tail_lower_bound(scenario("impatient-100", load=0.9), 1.0)
    with pytest.raises(ValueError, match=r"t must be finite numbers >= 0, got -1\.0"):
        theory.tail_lower_bound(scenario("high-load-2"), -1.0)


@pytest.mark.parametrize("name", SCENARIOS)
def test_every_named_scenario_has_values_with_formula_and_source(name: str) -> None:
    values = listed(scenario(name)).values()
    assert values
    for value in values:
        assert value.unit in ("time", "jobs", "probability", "ratio")
        assert value.kind in ("exact", "bound", "limit")
        assert value.formula
        assert value.source
        assert value.value >= 0.0
        assert value.unit != "probability" or value.value <= 1.0


def test_one_server_lists_every_policy_with_a_closed_form() -> None:
    model = scenario({"servers": 1, "load": 0.7, "sizes": {**PARETO, "mean": 2.0}})
    found = listed(model)
    for policy in theory.CONDITIONAL_RESPONSE:
        value = found[policy, "mean response", "exact"].value
        assert value == theory.mean_response(policy, 0.35, model.sizes)
    for policy in theory.SLOWDOWN_POLICIES:
        assert found[policy, "mean slowdown", "exact"].value == theory.mean_slowdown(policy, 0.35, model.sizes)
    assert found["fcfs", "mean waiting", "exact"].value == math.inf
    assert found["any", "mean response", "bound"].value == found["srpt", "mean response", "exact"].value


def test_many_servers_with_exponential_sizes_list_erlang_c() -> None:
    found = listed(scenario("light-2", sizes={"law": "exponential", "mean": 3.0}))
    for policy in ("fcfs", "lcfs", "plcfs", "ps", "las"):
        assert found[policy, "mean response", "exact"].value == pytest.approx(3.0 / 0.36, rel=1e-12)
    assert found["fcfs", "P[W > 0]", "exact"].value == pytest.approx(2 * 0.64 / 1.8, rel=1e-12)
    assert ("srpt", "mean response", "exact") not in found


def test_many_servers_with_other_sizes_list_only_what_does_not_depend_on_the_law() -> None:
    found = listed(scenario("high-load-2"))
    assert {policy for policy, _, kind in found if kind == "exact"} == {"ps", "super-server"}
    assert found["ps", "mean response", "exact"].value == pytest.approx(1.0 / 0.36, rel=1e-12)
    assert found["ps", "mean slowdown", "exact"].value == pytest.approx(1.0 / 0.36, rel=1e-12)


def test_super_server_is_the_single_server_at_a_different_speed() -> None:
    for servers in (2, 10):
        found = listed(scenario({"servers": servers, "load": 0.8, "sizes": PARETO}))
        fast = found["super-server", "mean response", "exact"].value
        alone = theory.mean_response("srpt", 0.8, scenario("high-load-2").sizes)
        assert fast == pytest.approx(alone / servers, rel=1e-9)
        assert found["any", "mean response", "bound"].value == max(fast, 1.0)


def test_tail_bound_is_listed_for_the_decades_of_the_score() -> None:
    model = scenario("high-load-2", sizes={**PARETO, "mean": 5.0})
    found = listed(model)
    for factor in (1, 10, 100, 1_000, 10_000):
        value = found["any", f"P[T > {factor} E[S]]", "bound"]
        assert value.value == float(theory.tail_lower_bound(model, 5.0 * factor))
        assert "t→∞" in value.formula
    light = listed(scenario("light-2"))["any", "P[T > 10 E[S]]", "bound"]
    assert "only for regularly varying" in light.formula
    low = listed(scenario("low-load-4"))["any", "P[T > 10 E[S]]", "bound"]
    assert "every t" in low.formula


def test_exponential_patience_lists_erlang_a_and_the_limits() -> None:
    model = scenario("impatient-100")
    found = listed(model)
    exact = theory.erlang_a(120.0, 1.0, 100, 1.0)
    for policy in ("fcfs", "lcfs", "plcfs"):
        assert found[policy, "P[abandon]", "exact"].value == exact.abandonment
        assert found[policy, "mean waiting", "exact"].value == exact.mean_waiting
    assert found["fcfs", "mean waiting of served jobs", "exact"].value == exact.mean_waiting_served
    assert ("lcfs", "mean waiting of served jobs", "exact") not in found
    assert ("plcfs", "P[W > 0]", "exact") not in found
    assert found["srpt", "throughput/λ", "limit"].value == pytest.approx(0.9606471522676, rel=1e-10)
    assert found["fcfs", "P[abandon]", "limit"].value == pytest.approx(1 / 6, rel=1e-12)
    assert found["loss-priority", "P[loss] of class 1", "exact"].value == theory.erlang_b(100, 100.0)
    assert found["srpt", "largest size served, τ", "limit"].value == theory.srpt_threshold(1.2, model.sizes)
    assert found["fcfs", "waiting of served jobs, w", "limit"].value == pytest.approx(math.log(1.2), rel=1e-12)
    bounds = {quantity: value.value for (_, quantity, kind), value in found.items() if kind == "bound"}
    assert bounds == {
        "P[abandon]": pytest.approx(1 - 0.9606471522676, rel=1e-10),
        "mean waiting": pytest.approx(1 - 0.9606471522676, rel=1e-10),
    }
    served = found["loss-priority", "throughput/λ of class 1", "exact"].value
    assert served == pytest.approx(0.9606471522676 * (1 - theory.erlang_b(100, 100.0)), rel=1e-10)


def test_decreasing_hazard_leaves_out_the_waiting_limit_of_lcfs() -> None:
    found = listed(scenario("impatient-dhr-100"))
    assert ("lcfs", "throughput/λ", "limit") in found
    assert ("lcfs", "mean waiting", "limit") not in found
    assert ("fcfs", "mean waiting", "limit") in found
    assert [key for key in found if key[2] == "bound"] == [("any", "P[abandon]", "bound")]
    assert not any(kind == "exact" and policy != "loss-priority" for policy, _, kind in found)


def test_what_a_result_assumes_is_respected() -> None:
    """No limit below load 1, no Erlang A if the clock runs in service, only the tail if not Poisson."""
    assert not any(kind == "limit" for _, _, kind in listed(scenario("impatient-100", load=0.9)))
    standing, moving = (listed(scenario("impatient-100", clock=clock)) for clock in ("queue", "fractional"))
    assert standing.pop(("any", "mean waiting", "bound"))  # W is the time at rate zero, where this clock runs too
    assert standing == moving
    assert theory.applicable(scenario("impatient-100", clock="sojourn")) == []
    renewal = {"process": "renewal", "law": {"law": "uniform", "low": 0.0, "high": 2.0}}
    kept = listed(scenario("light-2", arrivals=renewal))
    assert len(kept) == 5
    assert all(kind == "bound" and quantity.startswith("P[T") for _, quantity, kind in kept)
    assert theory.applicable(scenario("impatient-100", arrivals=renewal)) == []


def test_constant_sizes_are_covered() -> None:
    found = listed(scenario({"servers": 1, "load": 0.8, "sizes": {"law": "deterministic", "value": 2.0}}))
    assert found["srpt", "mean response", "exact"].value == pytest.approx(6.0, rel=1e-12)
    overload = listed(scenario("impatient-100", sizes={"law": "deterministic", "value": 2.0}))
    assert ("srpt", "throughput/λ", "limit") not in overload
    assert ("fcfs", "mean waiting", "limit") in overload
