"""Scenarios: the eight with names, overrides, plain data and messages."""

import json
import math
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.random import SeedSequence

from queue_env.distributions import law
from queue_env.scenarios import CLOCKS, SCENARIOS, Scenario, scenario

EXPONENTIAL = {"law": "exponential", "mean": 1}
MMPP = {"process": "mmpp", "rates": [4, 0.5], "generator": [[-0.1, 0.1], [0.05, -0.05]]}

NAMED: dict[str, tuple[int, float, dict[str, Any], dict[str, Any] | None]] = {
    "high-load-2": (2, 0.8, {"law": "pareto", "alpha": 1.5, "mean": 1}, None),
    "high-load-4": (4, 0.9, {"law": "pareto", "alpha": 2, "mean": 1}, None),
    "high-load-10": (10, 0.95, {"law": "pareto", "alpha": 1.5, "mean": 1}, None),
    "low-load-4": (4, 0.6, {"law": "pareto", "alpha": 1.5, "mean": 1}, None),
    "light-2": (2, 0.8, EXPONENTIAL, None),
    "impatient-100": (100, 1.2, EXPONENTIAL, EXPONENTIAL),
    "impatient-dhr-100": (
        100,
        1.5,
        {"law": "weibull", "shape": 0.5, "mean": 1},
        {"law": "weibull", "shape": 0.4, "mean": 1},
    ),
    "impatient-dhr-light-100": (
        100,
        1.5,
        {"law": "weibull", "shape": 2, "mean": 1},
        {"law": "weibull", "shape": 0.4, "mean": 1},
    ),
}


@pytest.mark.parametrize("name", NAMED)
def test_named_scenario(name: str) -> None:
    servers, load, sizes, patience = NAMED[name]
    found = scenario(name)
    assert (found.name, found.servers, found.load, found.clock) == (name, servers, load, "queue")
    assert found.sizes == law(sizes)
    assert found.patience == (None if patience is None else law(patience))
    assert found.arrivals == {"process": "poisson"}
    assert found.sizes.mean == pytest.approx(1, rel=1e-12)
    assert found.arrival_rate == pytest.approx(servers * load, rel=1e-12)


def test_there_are_eight_of_plain_data() -> None:
    assert list(SCENARIOS) == list(NAMED)
    assert json.loads(json.dumps(SCENARIOS)) == SCENARIOS


@pytest.mark.parametrize(("name", "spare", "c"), [("high-load-2", 0.4, 0.4), ("low-load-4", 1.6, 1.0)])
def test_spare_capacity(name: str, spare: float, c: float) -> None:
    assert scenario(name).spare == pytest.approx(spare, rel=1e-12)
    assert scenario(name).c == pytest.approx(c, rel=1e-12)


def test_overload_leaves_nothing_to_spare() -> None:
    assert scenario("impatient-100").spare == pytest.approx(-20)
    assert scenario("impatient-100").c < 0


@pytest.mark.parametrize("name", NAMED)
def test_round_trip_through_json_and_pickle(name: str) -> None:
    found = scenario(name, arrivals=MMPP, clock="sojourn")
    text = json.dumps(found.to_dict())
    assert Scenario.from_dict(json.loads(text)) == found
    assert pickle.loads(pickle.dumps(found)) == found


specs = st.fixed_dictionaries(
    {
        "servers": st.integers(1, 10_000),
        "load": st.floats(1e-3, 0.999),
        "sizes": st.builds(lambda a, m: {"law": "pareto", "alpha": a, "mean": m}, st.floats(1.1, 9), st.floats(0.1, 9)),
        "patience": st.none() | st.builds(lambda m: {"law": "exponential", "mean": m}, st.floats(0.1, 9)),
        "clock": st.sampled_from(CLOCKS),
    },
    optional={"name": st.text(), "arrivals": st.just(MMPP)},
)


@given(specs)
@settings(deadline=None)
def test_any_scenario_round_trips(values: dict[str, Any]) -> None:
    found = scenario(values)
    again = scenario(json.loads(json.dumps(found.to_dict())))
    assert again == found
    assert hash(again) == hash(found)
    assert found.name == values.get("name", "custom")
    assert found.arrival_rate * found.sizes.mean == pytest.approx(found.servers * found.load, rel=1e-12)


def test_overrides() -> None:
    found = scenario("high-load-2", load=0.9, sizes={"law": "pareto", "alpha": 2, "mean": 1})
    assert (found.load, found.sizes, found.servers) == (0.9, law({"law": "pareto", "alpha": 2, "mean": 1}), 2)
    assert found == scenario(scenario("high-load-2"), load=0.9, sizes=found.sizes)
    assert found == scenario(scenario("high-load-2").to_dict(), load=0.9, sizes=found.sizes)
    assert found != scenario("high-load-2")
    assert found.replace(name="mine", servers=3).name == "mine"
    assert scenario(found) == found


def test_patience_can_be_taken_away() -> None:
    assert scenario("impatient-100", load=0.9, patience=None).patience is None


def test_laws_and_servers_may_be_objects() -> None:
    found = Scenario("mine", np.int64(3), 0.5, law(EXPONENTIAL))  # type: ignore[arg-type]
    assert found == scenario({"name": "mine", "servers": 3, "load": 0.5, "sizes": EXPONENTIAL})
    assert type(found.servers) is int


def test_arrivals_are_copied() -> None:
    arrivals = json.loads(json.dumps(MMPP))
    found = scenario("light-2", arrivals=arrivals)
    arrivals["rates"][0] = 99
    found.to_dict()["arrivals"]["rates"][0] = 77
    assert found.arrivals == MMPP


def test_named_data_is_not_touched_by_overrides() -> None:
    before = json.dumps(SCENARIOS)
    scenario("impatient-100", load=1.9).to_dict()["sizes"]["law"] = "none"
    assert json.dumps(SCENARIOS) == before


@pytest.mark.parametrize("name", ["high-load-10", "impatient-dhr-100"])
def test_stream_has_the_load(name: str) -> None:
    """Means of 10⁵ exponential gaps and sizes within 4.9 standard deviations: a false alarm of 1e-6 each."""
    jobs = 100_000
    found = scenario(name, sizes={"law": "exponential", "mean": 2}, arrivals={"process": "poisson"})
    chunk = found.stream(SeedSequence(3)).chunk(jobs)
    assert (chunk.patience is None) == (found.patience is None)
    relative_error = 4.9 / math.sqrt(jobs)
    assert chunk.arrival_times[-1] * found.arrival_rate / jobs == pytest.approx(1, abs=relative_error)
    assert chunk.sizes.mean() == pytest.approx(2, rel=relative_error)
    assert found.arrival_rate == pytest.approx(found.load * found.servers / 2)


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"servers": 0}, "servers must be an integer from 1 to 10000, got 0"),
        ({"servers": 10_001}, "servers must be an integer from 1 to 10000, got 10001"),
        ({"servers": 2.0}, "servers must be an integer from 1 to 10000, got 2.0"),
        ({"load": 0}, "load must be a finite number > 0, got 0"),
        ({"load": math.nan}, "load must be a finite number > 0, got nan"),
        ({"load": math.inf, "patience": EXPONENTIAL}, "load must be a finite number > 0, got inf"),
        ({"load": 1}, "load must be < 1 without patience, got 1.0"),
        ({"clock": "wall"}, "clock must be one of queue, fractional, sojourn, got 'wall'"),
        ({"sizes": {"law": "pareto", "alpha": 1, "minimum": 1}}, "sizes must be a law of finite mean"),
        ({"sizes": "pareto"}, "scenario: sizes: .*must be a mapping"),
        ({"sizes": None}, "scenario: sizes: .*must be a mapping"),
        ({"patience": {"law": "expo"}}, "scenario: patience: .*must be one of"),
        ({"arrivals": {"process": "mmp"}}, "perhaps mmpp"),
        (
            {"arrivals": {"process": "renewal", "law": law(EXPONENTIAL)}},
            "arrivals must be a mapping fit for JSON",
        ),
        ({"arrivals": "poisson"}, "arrivals must be a mapping fit for JSON"),
        ({"name": 3}, "name must be a string, got 3"),
        ({"severs": 3}, "fields must be among name, .* \\(perhaps servers\\), got 'severs'"),
    ],
)
def test_bad_field_is_refused(overrides: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        scenario("light-2", **overrides)


@pytest.mark.parametrize(
    ("base", "message"),
    [
        ("high-load", r"one of high-load-2, .* \(perhaps high-load-\d.*\), got 'high-load'"),
        ("xyz", "one of high-load-2, .*, impatient-dhr-light-100, got 'xyz'"),
        (7, "got 7"),
        ({"servers": 2, "sizes": EXPONENTIAL}, r"complete \(missing: load\)"),
    ],
)
def test_unknown_or_incomplete_scenario(base: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        scenario(base)
