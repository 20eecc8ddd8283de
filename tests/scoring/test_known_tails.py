"""Tail curves beside closed forms, numerical solutions and limits.

Exact values must lie in 99.9 % intervals (Student's over replications, joint over the times of a curve), 11 in all: a
correct estimator would fail for a fraction of at most 0.011 of the choices of seeds. Limits may be off by 5 % besides.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import integrate
from scipy.linalg import expm

from queue_env import Scenario
from queue_env.scoring.curve import run_decomposition, runnable_policy
from queue_env.theory import mean_response, mmn_response_tail
from queue_env.theory.many_servers import erlang_c
from tests.scoring.small import LEVEL, short_replications, small_curve, standard_error, student, total_within

Floats = NDArray[np.float64]

LOAD = 0.7
STATES = 300  # numbers present up to which equations are solved
LIMIT = 0.05  # by which limits may be off; the terms left out are of relative order t^(-1/2), a few % here


def markov(servers: int) -> Scenario:
    return Scenario.from_dict({"servers": servers, "load": LOAD, "sizes": {"law": "exponential", "mean": 1.0}})


def heavy(load: float, alpha: float = 1.5) -> Scenario:
    return Scenario.from_dict({"servers": 1, "load": load, "sizes": {"law": "pareto", "alpha": alpha, "mean": 1.0}})


def survival(up: Floats, down: Floats, leave: Floats, start: Floats, times: list[float]) -> Floats:
    """P[T > t] of a job whose surroundings are a birth-death process that it leaves at a rate that depends on it."""
    diagonal = -(up + down + leave)
    matrix = np.diag(down[1:], -1) + np.diag(diagonal) + np.diag(up[:-1], 1)
    steps = np.diff(times, prepend=0.0)
    over = {step: expm(matrix * step) for step in set(steps.tolist())}
    alive, found = np.ones(len(up)), []
    for step in steps.tolist():
        alive = over[step] @ alive
        found.append(start @ alive)
    return np.array(found)


def shared(servers: int, times: list[float]) -> Floats:
    """P[T > t] in M/M/n under ps; the state is the number of other jobs, which the job shares the servers with.

    Source: Coffman, Muntz, Trotter, Waiting time distributions for processor-sharing systems, J. ACM 17 (1970).
    """
    others = np.arange(STATES, dtype=float)
    rate = np.minimum(1.0, servers / (others + 1))
    offered = servers * LOAD
    log_weights = np.zeros(STATES)
    log_weights[1:] = np.cumsum(np.log(offered / np.minimum(others[1:], servers)))
    start = np.exp(log_weights)
    return survival(np.full(STATES, offered), others * rate, rate, start / start.sum(), times)


def busy_period(times: list[float]) -> Floats:
    """P[T > t] in M/M/1 under plcfs, which is the busy period's; the state is how many have come since, less one."""
    start, down, leave = np.zeros(STATES), np.ones(STATES), np.zeros(STATES)
    start[0], down[0], leave[0] = 1.0, 0.0, 1.0
    return survival(np.full(STATES, LOAD), down, leave, start, times)


EXACT: dict[str, tuple[str, int, list[float], Callable[[list[float]], Any]]] = {
    "M/M/1 fcfs": ("fcfs", 1, [1.0, 5.0, 10.0, 15.0], lambda t: np.exp(-(1 - LOAD) * np.array(t))),
    "M/M/3 fcfs": ("fcfs", 3, [1.0, 4.0, 10.0], lambda t: mmn_response_tail(3 * LOAD, 1.0, 3, t)),
    "M/M/1 ps": ("ps", 1, [1.0, 5.0, 20.0, 50.0], lambda t: shared(1, t)),
    "M/M/2 ps": ("ps", 2, [1.0, 5.0, 20.0], lambda t: shared(2, t)),
    "M/M/1 plcfs": ("plcfs", 1, [1.0, 5.0, 20.0, 100.0], busy_period),
}


@pytest.mark.parametrize("case", EXACT)
def test_exponential_sizes(case: str) -> None:
    policy, servers, times, exact = EXACT[case]
    curve = small_curve(policy, markov(servers), times, seed=5, most_jobs=1.2e7)
    wanted = np.asarray(exact(times))
    error = standard_error(curve)
    assert total_within(curve), curve.total
    assert np.all(error < 0.15 * wanted)
    assert np.all(abs(curve.tail - wanted) <= student(1 - (1 - LEVEL) / len(times), 20) * error), (curve.tail, wanted)


def test_the_solutions_of_equations_are_those_of_closed_forms() -> None:
    """At t = 0, for means, and under fcfs, where a job is served when all before it have been."""
    grid = np.arange(1601) / 8
    for tail in (shared(1, grid.tolist()), busy_period(grid.tolist())):
        assert tail[0] == pytest.approx(1)
        assert integrate.simpson(tail, x=grid) == pytest.approx(1 / (1 - LOAD), rel=2e-3)
    mean = 1 + erlang_c(2, 2 * LOAD) / (2 - 2 * LOAD)
    assert integrate.simpson(shared(2, grid.tolist()), x=grid) == pytest.approx(mean, rel=1e-3)


def decomposed(
    policy: str, model: Scenario, times: Floats, columns: Floats, wanted: list[float], jobs: float
) -> tuple[Floats, Floats]:
    """Linear functions of the tail at 0 and at times, but for the first, and halves of their 99.9 % intervals."""
    with short_replications():
        found = run_decomposition(
            "tail_curve",
            model,
            runnable_policy(model, policy, "tail_curve"),
            times,
            columns,
            np.array(wanted),
            seed=6,
            level=2,
            most_jobs=jobs,
            threads=2,
            ray=None,
            progress=False,
            checkpoint=None,
        )
    level = 1 - (1 - LEVEL) / (len(wanted) - 1)
    return found.estimate.value[1:], found.estimate.half_width(level)[1:]


@pytest.mark.parametrize("policy", ["srpt", "las", "psjf"])
def test_the_area_under_the_tail_is_the_mean(policy: str) -> None:
    """In M/M/1, by Simpson's rule over ln t; the area before the first time and after the last is below 1e-4 of it."""
    model = markov(1)
    times = np.geomspace(1e-4, 200.0, 61)
    columns = np.zeros((len(times) + 1, 2))
    columns[0] = 1.0, times[0]
    columns[1:, 1] = times * integrate.simpson(np.eye(len(times)), x=np.log(times), axis=-1)
    exact = mean_response(policy, LOAD, model.sizes)
    value, half = decomposed(policy, model, times, columns, [0.05, 0.05], 4e6)
    assert half < 0.1 * exact
    assert abs(value - exact) <= half + 1e-3 * exact


FAR = np.array([1e3, 1e4])


@pytest.mark.parametrize("policy", ["srpt", "ps"])
def test_far_out_a_job_is_served_at_the_rate_that_others_leave(policy: str) -> None:
    """P[T > t] is about P[S > (1-ρ)t].

    Source: Zwart, Boxma, Sojourn time asymptotics in the M/G/1 processor sharing queue, Queueing Systems 35 (2000);
    Núñez-Queija, Queues with equally heavy sojourn time and service requirement distributions, Ann. Oper. Res. 113
    (2002), for srpt.
    """
    model = heavy(0.5)
    wanted = model.sizes.tail((1 - model.load) * FAR)
    value, half = decomposed(policy, model, FAR, np.eye(3), [1e3, 0.1, 0.1], 6e7)
    assert np.all(half < 0.5 * wanted)
    assert np.all(abs(value - wanted) <= half + LIMIT * wanted), (value / wanted, half / wanted)


def test_far_out_fcfs_waits_for_a_residual_size() -> None:
    """P[T > t] is about ρ/(1-ρ) P[S_e > t].

    Every job that comes behind a large one is late, so that estimates have no finite variance for α <= 1.5.

    Source: Pakes, On the tails of waiting-time distributions, J. Appl. Probab. 12 (1975).
    """
    model = heavy(0.5, alpha=2.5)
    times = np.array([300.0, 3000.0])
    wanted = model.load / (1 - model.load) * model.sizes.residual_tail(times)
    value, half = decomposed("fcfs", model, times, np.eye(3), [1e3, 0.1, 0.1], 2e8)
    assert np.all(half < 0.5 * wanted)
    assert np.all(abs(value - wanted) <= half + LIMIT * wanted), (value / wanted, half / wanted)
