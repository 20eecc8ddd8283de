"""What the environment executes and what it charges, against independent recomputations."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize

from queue_env import QueueEnv
from queue_env.reward import job_costs

TERMS = {"tail": 1.0, "mean": 0.5, "slowdown": 0.25, "moment(2)": 0.1, "exceed(3)": 2.0, "wait": 0.7}
PATIENT = {"servers": 2, "load": 0.8, "sizes": {"law": "pareto", "alpha": 1.5, "mean": 1.0}}
IMPATIENT = PATIENT | {"load": 0.9, "patience": {"law": "exponential", "mean": 2.0}}
SLOTS = 16


def projection(desired: ArrayLike, servers: int) -> NDArray[np.float64]:
    """The point of {0 <= v <= 1, sum <= n} nearest to finite desired rates, exactly, from breakpoints."""
    exact = [Fraction(a) for a in np.asarray(desired, np.float64).tolist()]

    def rates(multiplier: Fraction) -> list[Fraction]:
        return [min(max(a - multiplier, Fraction(0)), Fraction(1)) for a in exact]

    if sum(rates(Fraction(0))) <= servers:
        return np.array(rates(Fraction(0)), np.float64)
    points = sorted({Fraction(0), *(a - k for a in exact for k in (0, 1) if a > k)})
    low = max(m for m in points if sum(rates(m)) >= servers)
    high = min(m for m in points if sum(rates(m)) <= servers)
    above, below = sum(rates(low)), sum(rates(high))
    share = Fraction(0) if above == below else (above - servers) / Fraction(above - below)
    return np.array(rates(low + share * (high - low)), np.float64)


def finite(desired: NDArray[np.float64]) -> NDArray[np.float64]:
    """Infinite entries made so large that the nearest point is their limit."""
    return np.clip(desired, -np.finfo(np.float64).max, np.finfo(np.float64).max)


def crowded(servers: int, number: int, **arguments: Any) -> QueueEnv:
    """An environment with so many jobs present."""
    scenario = PATIENT | {"servers": servers}
    env = QueueEnv(scenario, slots=SLOTS, allocation_in_info=True, work_conserving=False, **arguments)
    present = [{"size": 1.0 + i, "age": 1.0 + i} for i in range(number)]
    env.reset(seed=1, options={"jobs": present[1:], "job": {"size": 0.5}})
    return env


entries = st.one_of(
    st.floats(-2, 3),
    st.floats(allow_nan=False, width=64),
    st.sampled_from([0.0, 0.5, 1.0, -1.0, 1e300, -1e300, math.inf, -math.inf, 1e-300, 1e16, 1e16 + 2]),
)
vectors = st.one_of(
    st.lists(entries, min_size=SLOTS, max_size=SLOTS),
    entries.map(lambda entry: [entry] * SLOTS),
)


@settings(max_examples=300, deadline=None, derandomize=True)
@given(vectors, st.integers(1, 6), st.integers(1, 14))
def test_executed_rates_are_the_nearest_that_are_allowed(action: list[float], servers: int, number: int) -> None:
    env = crowded(servers, number)
    desired = np.array(action)
    *_, info = env.step(desired)
    rates = info["allocation"]
    assert (rates >= 0).all()
    assert (rates <= 1).all()
    assert rates.sum() <= servers * (1 + 1e-12)
    assert (rates[number:] == 0).all()
    np.testing.assert_allclose(rates[:number], projection(finite(desired[:number]), servers), rtol=0, atol=1e-9)


def within_reach(desired: NDArray[np.float64], servers: int) -> NDArray[np.float64]:
    """Desired rates of moderate size with the same nearest allowed point.

    The nearest point is min(max(a - m, 0), 1), and m lies in [p-1, p] where p is the n-th largest of desired rates, if
    that is above one; else in [0, 1]. So a shift of all by p-1 shifts m by as much, and entries below -1 or above 2 are
    then zero or one however far they are. A solver for quadratic programs needs it, as 1e300 leaves it no digits.
    """
    exact = [Fraction(a) for a in desired.tolist()]
    pivot = sorted(exact, reverse=True)[servers - 1] if len(exact) >= servers else Fraction(1)
    shift = max(pivot, Fraction(1)) - 1
    return np.array([float(min(max(a - shift, Fraction(-1)), Fraction(2))) for a in exact])


def nearest_by_solver(desired: NDArray[np.float64], servers: int) -> NDArray[np.float64]:
    """The point of {0 <= v <= 1, sum <= n} nearest to desired rates, by sequential quadratic programming."""
    number = len(desired)
    return np.asarray(
        minimize(
            lambda v: 0.5 * np.sum((v - desired) ** 2),
            np.full(number, 0.5 * min(1.0, servers / number)),
            jac=lambda v: v - desired,
            bounds=[(0.0, 1.0)] * number,
            constraints={"type": "ineq", "fun": lambda v: servers - v.sum(), "jac": lambda v: -np.ones(number)},
            method="SLSQP",
            options={"ftol": 1e-14, "maxiter": 500},
        ).x
    )


def filled(entry: st.SearchStrategy[float]) -> st.SearchStrategy[list[float]]:
    return st.lists(entry, min_size=SLOTS, max_size=SLOTS)


MODERATE = 100.0
FAMILIES = {
    "huge": filled(st.floats(1e15, 1e308) | st.sampled_from([1e16, 1e16 + 2, 1e300, 2e300])),
    "negative": filled(st.floats(-1e308, 0) | st.floats(-3, 0)),
    "infinite": filled(st.sampled_from([math.inf, -math.inf]) | st.floats(-2, 3)),
    "equal": st.floats(allow_nan=False).map(lambda entry: [entry] * SLOTS)
    | st.floats(-2, 3).map(lambda a: [a] * SLOTS),
    "zero": st.just([0.0] * SLOTS) | filled(st.sampled_from([0.0, -0.0, 1e-300])),
    "moderate": filled(st.floats(-2, 3)) | filled(st.floats(-MODERATE, MODERATE)),
}


@pytest.mark.parametrize("family", FAMILIES)
@settings(max_examples=60, deadline=None, derandomize=True)
@given(data=st.data(), servers=st.integers(1, 6), number=st.integers(1, 14))
def test_executed_rates_are_those_of_a_quadratic_program(
    family: str, data: st.DataObject, servers: int, number: int
) -> None:
    env = crowded(servers, number)
    desired = np.array(data.draw(FAMILIES[family]))
    *_, info = env.step(desired)
    rates = info["allocation"]
    assert (rates >= 0).all()
    assert (rates <= 1).all()
    assert math.fsum(rates) <= servers + 1e-12
    assert (rates[number:] == 0).all()
    wanted = finite(desired[:number])
    near = wanted if np.abs(wanted).max() <= MODERATE else within_reach(wanted, servers)
    # What sequential quadratic programming reaches in float64 is some 1e-8 from the point.
    np.testing.assert_allclose(rates[:number], nearest_by_solver(near, servers), rtol=0, atol=1e-6)


def same(one: Any, other: Any) -> bool:
    parts = ("system", "jobs", "shown", "anchor", "outcome", "chunk")
    return one.time == other.time and all(
        np.asarray(getattr(one, part)).tobytes() == np.asarray(getattr(other, part)).tobytes() for part in parts
    )


@settings(max_examples=50, deadline=None, derandomize=True)
@given(vectors, st.integers(0, SLOTS - 1))
def test_nan_is_refused_and_changes_nothing(action: list[float], place: int) -> None:
    env, twin = crowded(2, 6), crowded(2, 6)
    before = env.snapshot()
    desired = np.array(action)
    desired[place] = math.nan
    with pytest.raises(ValueError, match="NaN"):
        env.step(desired)
    assert same(before, env.snapshot())
    proper = np.linspace(0, 1, SLOTS)
    assert env.step(proper)[1] == twin.step(proper)[1]
    assert same(env.snapshot(), twin.snapshot())


@pytest.mark.parametrize("conserving", [True, False])
@pytest.mark.parametrize("interval", [None, 0.7])
@pytest.mark.parametrize("episode", [{"jobs": 60}, {"episode": "horizon", "horizon": 40.0}])
@pytest.mark.parametrize("scenario", [PATIENT, IMPATIENT])
def test_rewards_add_up_to_the_costs_of_the_records(
    scenario: dict[str, Any], episode: dict[str, Any], interval: float | None, conserving: bool
) -> None:
    impatient = "patience" in scenario
    reward = TERMS | ({"abandon": 3.0} if impatient else {})
    # The range of the tail begins past the kink of the bound, where its table is exact to 1e-8.
    env = QueueEnv(
        scenario,
        reward=reward,
        tail_range=(2.0, 1e4),
        records=True,
        decision_interval=interval,
        work_conserving=conserving,
        **episode,
    )
    rng = np.random.default_rng(11)
    for seed in range(5):
        _, info = env.reset(seed=seed)
        total, charged, over = 0.0, dict.fromkeys(reward, 0.0), False
        waited = 0.0
        while not over:
            _, paid, terminated, truncated, info = env.step(rng.random(env.config.slots))
            total += paid
            charged = {name: charged[name] + info["cost"][name] for name in reward}
            over = terminated or truncated
        records, end = env.records(), info["time"]
        present = records["outcome"] == 2
        ages = np.where(present, end, records["departure_time"]) - records["arrival_time"]
        # The records of those present do not tell how long they have waited; their snapshot does.
        waiting = np.where(present, 0.0, records["waiting_time"])
        jobs = env.snapshot().jobs
        assert len(jobs) == present.sum()
        np.testing.assert_array_equal(records["size"][jobs["number"]], jobs["size"])
        waited = float(np.sum(env.snapshot().ages - jobs["busy_time"]))
        costs = job_costs(
            env.config.terms,
            ages=ages,
            sizes=records["size"],
            waiting=waiting,
            abandoned=records["outcome"] == 1,
            tail=env.config.tail,
        ).sum(axis=1)
        expected = dict(zip(reward, costs.tolist(), strict=True))
        expected["wait"] += waited
        for name in reward:
            assert charged[name] == pytest.approx(expected[name], rel=1e-8, abs=1e-9), name
        assert total == pytest.approx(-sum(weight * expected[name] for name, weight in reward.items()), rel=1e-8)
