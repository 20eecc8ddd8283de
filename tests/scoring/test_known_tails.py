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
from scipy import integrate, sparse
from scipy.sparse.linalg import expm_multiply

from queue_env import Scenario
from queue_env.scoring.curve import run_decomposition, runnable_policy
from queue_env.theory import mean_response, mmn_response_tail
from queue_env.theory.many_servers import erlang_c
from tests.scoring.small import LEVEL, short_replications, small_curve, standard_error, student, total_within

Floats = NDArray[np.float64]

LOAD = 0.7
STATES = 300  # numbers present up to which equations are solved
LIMIT = 0.05  # by which limits may be off; the terms left out are of relative order t^(-1/2), below 1 % here


def markov(servers: int) -> Scenario:
    return Scenario.from_dict({"servers": servers, "load": LOAD, "sizes": {"law": "exponential", "mean": 1.0}})


def heavy(load: float) -> Scenario:
    return Scenario.from_dict({"servers": 1, "load": load, "sizes": {"law": "pareto", "alpha": 1.5, "mean": 1.0}})


def survival(up: Floats, down: Floats, leave: Floats, start: Floats, times: list[float]) -> Floats:
    """P[T > t] of a job whose surroundings are a birth-death process that it leaves at a rate that depends on it."""
    diagonal = -(up + down + leave)
    matrix = sparse.diags([down[1:], diagonal, up[:-1]], [-1, 0, 1], format="csr")
    return np.array([start @ expm_multiply(matrix * t, np.ones(len(up))) for t in times])


def shared(servers: int, times: list[float]) -> Floats:
    """P[T > t] in M/M/n under ps; the state is the number of other jobs, which the job shares the servers with.

    Source: Coffman, Muntz, Trotter, Waiting time distributions for processor-sharing systems, J. ACM 17 (1970).
    """
    others = np.arange(STATES, dtype=float)
    rate = np.minimum(1.0, servers / (others + 1))
    offered = servers * LOAD
    log_weights = np.cumsum(np.log(offered / np.minimum(np.maximum(others, 1), servers))) - np.log(offered)
    log_weights[0] = 0.0
    log_weights[1:] = np.cumsum(np.log(offered / np.minimum(others[1:], servers)))
    start = np.exp(log_weights)
    return survival(np.full(STATES, offered), others * rate, rate, start / start.sum(), times)


def busy_period(times: list[float]) -> Floats:
    """P[T > t] in M/M/1 under plcfs, which is the busy period's; the state is how many have come since, less one."""
    start, down, leave = np.zeros(STATES), np.ones(STATES), np.zeros(STATES)
    start[0], down[0], leave[0] = 1.0, 0.0, 1.0
    return survival(np.full(STATES, LOAD), down, leave, start, times)


EXACT: dict[str, tuple[str, int, list[float], Callable[[list[float]], Any]]] = {
    "M/M/1 fcfs": ("fcfs", 1, [1.0, 5.0, 15.0, 40.0], lambda t: np.exp(-(1 - LOAD) * np.array(t))),
    "M/M/3 fcfs": ("fcfs", 3, [1.0, 4.0, 10.0], lambda t: mmn_response_tail(3 * LOAD, 1.0, 3, t)),
    "M/M/1 ps": ("ps", 1, [1.0, 5.0, 20.0, 50.0], lambda t: shared(1, t)),
    "M/M/2 ps": ("ps", 2, [1.0, 5.0, 20.0], lambda t: shared(2, t)),
    "M/M/1 plcfs": ("plcfs", 1, [1.0, 5.0, 20.0, 100.0], busy_period),
}


@pytest.mark.parametrize("case", EXACT)
def test_exponential_sizes(case: str) -> None:
    policy, servers, times, exact = EXACT[case]
    curve = small_curve(policy, markov(servers), times, seed=5, most_jobs=4e6)
    wanted = np.asarray(exact(times))
    error = standard_error(curve)
    assert total_within(curve), curve.total
    assert np.all(error < 0.15 * wanted)
    assert np.all(abs(curve.tail - wanted) <= student(1 - (1 - LEVEL) / len(times), 20) * error), (curve.tail, wanted)


def test_the_solutions_of_equations_are_those_of_closed_forms() -> None:
    """At t = 0, for means, and under fcfs, where a job is served when all before it have been."""
    grid = np.linspace(0, 200, 2001)
    for tail in (shared(1, grid.tolist()), busy_period(grid.tolist())):
        assert tail[0] == pytest.approx(1)
        assert integrate.simpson(tail, x=grid) == pytest.approx(1 / (1 - LOAD), rel=2e-3)
    mean = 1 + erlang_c(2, 2 * LOAD) / (2 - 2 * LOAD)
    assert integrate.simpson(shared(2, grid.tolist()), x=grid) == pytest.approx(mean, rel=1e-3)


@pytest.mark.parametrize("policy", ["srpt", "las", "psjf"])
def test_the_area_under_the_tail_is_the_mean(policy: str) -> None:
    """In M/M/1, by Simpson's rule over ln t; the area before the first time and after the last is below 1e-4 of it."""
    model = markov(1)
    times = np.geomspace(1e-4, 200.0, 61)
    columns = np.zeros((len(times) + 1, 2))
    columns[0] = 1.0, times[0]
    columns[1:, 1] = times * integrate.simpson(np.eye(len(times)), x=np.log(times), axis=-1)
    with short_replications():
        found = run_decomposition(
            model,
            runnable_policy(model, policy, "tail_curve"),
            times,
            columns,
            np.full(2, 0.05),
            seed=6,
            level=2,
            most_jobs=4e6,
            threads=2,
            progress=False,
            checkpoint=None,
        )
    exact = mean_response(policy, LOAD, model.sizes)
    half = float(found.estimate.half_width(LEVEL)[1])
    assert half < 0.1 * exact
    assert abs(found.estimate.value[1] - exact) <= half + 1e-3 * exact


@pytest.mark.parametrize("policy", ["srpt", "ps"])
def test_far_out_a_job_is_served_at_the_rate_that_others_leave(policy: str) -> None:
    """P[T > t] is about P[S > (1-ρ)t].

    Source: Zwart, Boxma, Sojourn time asymptotics in the M/G/1 processor sharing queue, Queueing Systems 35 (2000);
    Núñez-Queija, Queues with equally heavy sojourn time and service requirement distributions, Ann. Oper. Res. 113
    (2002), for srpt.
    """
    curve = small_curve(policy, heavy(0.5), [1e5, 1e6], seed=7, level=2, most_jobs=1e7)
    half = student(LEVEL, curve.replications) * standard_error(curve) / curve.bound
    assert np.all(half < 0.3)
    assert np.all(abs(curve.normalised_tail - 1) <= half + LIMIT), (curve.normalised_tail, half)


def test_far_out_fcfs_waits_for_a_residual_size() -> None:
    """P[T > t] is about ρ/(1-ρ) P[S_e > t].

    Source: Pakes, On the tails of waiting-time distributions, J. Appl. Probab. 12 (1975).
    """
    model = heavy(0.5)
    curve = small_curve("fcfs", model, [1e5, 1e6], seed=8, level=0, most_jobs=1e7)
    wanted = model.load / (1 - model.load) * model.sizes.residual_tail(curve.t)
    half = student(LEVEL, curve.replications) * standard_error(curve)
    assert np.all(half < 0.3 * wanted)
    assert np.all(abs(curve.tail - wanted) <= half + LIMIT * wanted), (curve.tail / wanted, half / wanted)
