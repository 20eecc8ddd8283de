"""Faults that users have reported of other simulators, each tried on this one as a kind and not as one example."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from queue_env import Result, Workload, simulate
from tests.reference import simulate as simulate_exactly
from tests.strategies import CLOCKS

Floats = NDArray[np.float64]
FULL_RATES = ("fcfs", "lcfs", "plcfs", "srpt", "psjf", "sjf")  # rates are 0 and 1, and no server is set aside
CONSERVING = (*FULL_RATES, "ps", "las", "split", "dynasplit:delta=0.5", "backlog-split")
NO_LOSS = (*CONSERVING, "thresh-split", "super-server")


def possible(names: tuple[str, ...], *servers: int) -> list[tuple[str, int]]:
    """Policies with numbers of servers; thresh-split needs two."""
    return [pair for pair in itertools.product(names, servers) if pair != ("thresh-split", 1)]


def run(workload: Workload, policy: str, servers: int, **options: Any) -> tuple[Result, dict[str, Floats]]:
    result = simulate(workload, policy, servers=servers, records=True, **options)
    assert result.records is not None
    return result, dict(result.records)


def busy_workload(seed: int, servers: int, jobs: int = 2000, impatient: bool = False) -> Workload:
    """Sizes over four decades at a load of about one, so that most policies preempt at most arrivals."""
    rng = np.random.default_rng(seed)
    sizes = 10.0 ** rng.uniform(-2, 2, jobs)
    arrivals = np.cumsum(rng.exponential(sizes.mean() / servers, jobs))
    return Workload(arrivals, sizes, rng.exponential(20.0, jobs) if impatient else None)


# ---- 1. a completion that was planned before a preemption --------------------------------------------------


@pytest.mark.parametrize(("policy", "servers"), possible(NO_LOSS, 1, 2, 5, 40))
def test_every_job_completes_once_though_it_is_preempted(policy: str, servers: int) -> None:
    workload = busy_workload(1, servers)
    result, records = run(workload, policy, servers)
    assert result.stats["served"].sum() == result.stats["counted"].sum() == len(workload)
    assert (records["outcome"] == 0).all()
    assert result.busy_area.sum() == pytest.approx(workload.sizes.sum(), rel=1e-10)
    speed = servers if policy == "super-server" else 1
    slack = 8 * np.spacing(records["departure_time"])
    assert (records["departure_time"] - records["arrival_time"] >= workload.sizes / speed - slack).all()


def test_a_preempted_job_resumes_and_does_not_complete_at_its_old_time() -> None:
    result, records = run(Workload([0, 1, 1.5], [10, 1, 1]), "srpt", 1)
    assert records["departure_time"].tolist() == [12, 2, 3]
    assert result.busy_area.tolist() == [12]


# ---- 2. a patience that outlives its job -------------------------------------------------------------------


@pytest.mark.parametrize("clock", CLOCKS)
@pytest.mark.parametrize(("policy", "servers"), possible(NO_LOSS, 1, 2, 40))
def test_the_patience_of_a_job_that_has_left_does_nothing(policy: str, servers: int, clock: str) -> None:
    workload = Workload([0, 0.25, 0.5], [1, 1, 1], [100, 200, 300])
    result, records = run(workload, policy, servers, clock=clock)
    free, _ = run(Workload([0, 0.25, 0.5], [1, 1, 1]), policy, servers)
    assert (records["outcome"] == 0).all()
    assert result.window.tolist() == free.window.tolist() == [records["departure_time"].max()]
    assert result.busy_area[0] == pytest.approx(3, rel=1e-14)


@pytest.mark.parametrize("clock", CLOCKS)
@pytest.mark.parametrize(("policy", "servers"), possible(NO_LOSS, 1, 3, 40))
def test_every_impatient_job_leaves_once(policy: str, servers: int, clock: str) -> None:
    workload = busy_workload(2, servers, impatient=True)
    result, records = run(workload, policy, servers, clock=clock)
    served, abandoned = (records["outcome"] == kind for kind in (0, 1))
    assert (served | abandoned).all()
    assert result.stats["served"].sum() == served.sum()
    assert result.stats["abandoned"].sum() == abandoned.sum()
    assert result.window[0] == pytest.approx(records["departure_time"].max() - workload.arrival_times[0], rel=1e-14)


# ---- 3. time that goes backwards ---------------------------------------------------------------------------


@pytest.mark.parametrize("clock", CLOCKS)
@pytest.mark.parametrize(("policy", "servers"), possible((*FULL_RATES, "split"), 1, 2, 4))
def test_simultaneous_events_happen_in_the_documented_order(policy: str, servers: int, clock: str) -> None:
    """Times that doubles hold exactly, nearly all of them shared by events of several kinds."""
    rng = np.random.default_rng(3)
    arrivals = np.cumsum(rng.integers(0, 3, 60) / servers / 2)
    sizes, patience = rng.integers(1, 5, 60) / 2, rng.integers(0, 9, 60) / 2
    _, records = run(Workload(arrivals, sizes, patience), policy, servers, clock=clock)
    exact = simulate_exactly(
        arrivals.tolist(), sizes.tolist(), policy, servers, patience=patience.tolist(), clock=clock
    ).arrays()
    np.testing.assert_array_equal(records["outcome"], exact["outcomes"])
    np.testing.assert_array_equal(records["departure_time"], exact["departure_times"])
    np.testing.assert_array_equal(records["waiting_time"], exact["waiting_times"])


# ---- 4. and 5. preemption without need, equal ranks --------------------------------------------------------


@pytest.mark.parametrize(("policy", "servers"), possible(CONSERVING, 2, 4, 33, 40))
def test_nobody_yields_or_waits_while_a_server_is_free(policy: str, servers: int) -> None:
    arrivals = np.arange(servers) / 64
    sizes = np.arange(servers, 0, -1) + 1.0
    result, records = run(Workload(arrivals, sizes), policy, servers)
    np.testing.assert_allclose(records["departure_time"], arrivals + sizes, rtol=1e-14)
    assert (records["start_time"] == arrivals).all()
    assert result.mean_waiting == 0


@pytest.mark.parametrize("copies", [1, 40])
@pytest.mark.parametrize(
    ("policy", "arrivals", "sizes", "departures"),
    [
        ("srpt", [0, 1], [3, 2], [3, 5]),  # the remaining size of the one is the size of the other
        ("srpt", [0, 0, 0], [2, 2, 2], [2, 4, 6]),
        ("srpt", [0, 1, 1], [9, 2, 2], [13, 3, 5]),
        ("psjf", [0, 1, 2], [2, 2, 2], [2, 4, 6]),
        ("sjf", [0, 1, 1], [2, 2, 2], [2, 4, 6]),
        ("plcfs", [0, 0, 1, 1], [2, 2, 2, 2], [6, 8, 3, 5]),
        ("lcfs", [0, 1, 1], [2, 2, 2], [2, 4, 6]),
    ],
)
def test_of_equals_the_earlier_job_goes_first(
    policy: str, arrivals: list[float], sizes: list[float], departures: list[float], copies: int
) -> None:
    """`copies`: servers, each with the same jobs, so that the other data structure has the same to do."""
    _, records = run(Workload(np.repeat(arrivals, copies), np.repeat(sizes, copies)), policy, copies)
    assert records["departure_time"].tolist() == np.repeat(departures, copies).tolist()


@pytest.mark.parametrize(
    ("policy", "sizes", "departures"),
    [
        ("split", [3, 3], [3, 6]),
        ("backlog-split:b=100", [3, 3, 3], [3, 6, 9]),
        ("split", [3, 5, 5], [13, 6, 11]),
    ],
)
def test_of_equals_the_earlier_is_the_anchor(policy: str, sizes: list[float], departures: list[float]) -> None:
    arrivals = np.minimum(np.arange(len(sizes)), 1)
    _, records = run(Workload(arrivals, sizes), policy, 1)
    assert records["departure_time"].tolist() == departures


# ---- 6. customers that are lost ----------------------------------------------------------------------------


@pytest.mark.parametrize(("policy", "servers"), possible(NO_LOSS, 1, 2, 40))
def test_none_of_a_great_batch_is_lost(policy: str, servers: int) -> None:
    jobs = 100_000 if servers == 2 else 10_000
    result = simulate(Workload(np.zeros(jobs), np.ones(jobs)), policy, servers=servers)
    assert result.stats["served"].sum() == result.stats["counted"].sum() == jobs
    assert result.busy_area[0] == pytest.approx(jobs, rel=1e-9)
    assert result.present == 0


@pytest.mark.parametrize(("policy", "servers"), possible(CONSERVING, 1, 2, 4, 64))
def test_deterministic_arrivals_and_sizes_that_just_fit(policy: str, servers: int) -> None:
    """D/D/n at load one: a server is free at the very instant of every arrival, and nobody waits."""
    jobs = 20_000
    result = simulate(Workload(np.arange(jobs) / servers, np.ones(jobs)), policy, servers=servers)
    assert result.stats["served"].sum() == jobs
    assert result.max_response == pytest.approx(1, rel=1e-9)
    assert result.mean_waiting == pytest.approx(0, abs=1e-9)


# ---- 7. the horizon ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", NO_LOSS[:-2])
def test_a_day_of_deterministic_jobs(policy: str) -> None:
    """D/D/1 with a job each hour that takes an hour: at 24, job 23 completes, job 24 arrives and is present."""
    _, records = run(Workload(np.arange(48.0), np.ones(48)), policy, 1, horizon=24)
    np.testing.assert_allclose(records["departure_time"][:24], np.arange(1, 25), rtol=1e-12)
    assert (records["outcome"] == np.repeat([0, 2], 24)).all()


@pytest.mark.parametrize("clock", CLOCKS)
@pytest.mark.parametrize(("policy", "servers"), possible((*FULL_RATES, "split", "ps", "las"), 1, 3))
def test_what_is_unfinished_at_the_horizon_is_reported(policy: str, servers: int, clock: str) -> None:
    workload = busy_workload(4, servers, jobs=60, impatient=True)
    assert workload.patience is not None
    horizon = float(workload.arrival_times[40])
    result, records = run(workload, policy, servers, clock=clock, horizon=horizon)
    columns = (workload.arrival_times.tolist(), workload.sizes.tolist())
    exact = simulate_exactly(
        *columns, policy, servers, patience=workload.patience.tolist(), clock=clock, horizon=horizon
    ).arrays()
    np.testing.assert_array_equal(records["outcome"], exact["outcomes"])
    np.testing.assert_allclose(records["departure_time"], exact["departure_times"], rtol=1e-12)
    present = (exact["outcomes"] == 2) & (workload.arrival_times <= horizon)
    assert result.present == result.stats["present"].sum() == present.sum() > 0
    assert result.window[0] == horizon - workload.arrival_times[0]
    assert result.little_law_gap < 1e-12


def test_the_waiting_of_an_unfinished_job_is_unknown() -> None:
    _, records = run(Workload([0, 1, 1.5], [10, 1, 1]), "srpt", 1, horizon=2.5)
    assert np.isnan(records["waiting_time"]).tolist() == [True, False, True]


def test_jobs_that_had_not_arrived_at_the_horizon_are_not_counted() -> None:
    workload = simulate(Workload([0, 1, 2, 3], [1, 1, 1, 1]), "srpt", servers=1, horizon=1.5)
    assert workload.jobs == workload.stats["counted"].sum() + workload.present == 2
    stream = simulate("light-2", "srpt", jobs=10_000, horizon=50, warmup=0)
    assert stream.jobs == stream.stats["counted"].sum() + stream.present < 200


# ---- 9. and 10. rounding -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("jobs", "servers", "size"),
    [(1_000_000, 3, 0.1), *itertools.product((1000,), (1, 3, 7), (1.0, 0.1, 1 / 3))],
)
@pytest.mark.parametrize("policy", ["ps", "las"])
def test_equal_jobs_that_share_end_together_at_the_total_work(
    policy: str, jobs: int, servers: int, size: float
) -> None:
    _, records = run(Workload(np.zeros(jobs), np.full(jobs, size)), policy, servers)
    np.testing.assert_allclose(records["departure_time"], jobs * size / servers, rtol=1e-11)


@pytest.mark.parametrize("policy", ["srpt", "ps", "las", "dynasplit:delta=0.5"])
def test_work_is_conserved_over_a_long_time(policy: str) -> None:
    rng = np.random.default_rng(5)
    sizes = rng.exponential(9e3, 100_000)
    workload = Workload(np.cumsum(rng.exponential(1e4, sizes.size)), sizes)
    result = simulate(workload, policy, servers=1)
    assert result.window[0] > 9e8
    assert result.busy_area[0] == pytest.approx(sizes.sum(), rel=1e-9)
    assert result.little_law_gap < 1e-10


@pytest.mark.parametrize(
    ("start", "step", "mean"), [(2.0**40, 2.0**-12, 1e-3), (1e12, 2.0**-10, 1e-3), (1e9, 2.0**-20, 1e-2)]
)
@pytest.mark.parametrize(("policy", "servers"), possible(NO_LOSS, 1, 2))
def test_a_clock_that_starts_late_is_as_precise(
    policy: str, servers: int, start: float, step: float, mean: float
) -> None:
    """Arrivals are multiples of `step`, which doubles hold at `start` too, so both runs have the same jobs."""
    rng = np.random.default_rng(6)
    gaps = step * np.ceil(rng.exponential(mean / servers, 1000) / step)
    arrivals, sizes = np.cumsum(gaps), rng.exponential(0.8 * gaps.mean() * servers, gaps.size)
    assert ((arrivals + start) - start == arrivals).all()
    early, late = (simulate(Workload(arrivals + offset, sizes), policy, servers=servers) for offset in (0.0, start))
    for name in ("response_sum", "response_max", "waiting_sum", "slowdown_sum", "slowdown_max"):
        np.testing.assert_allclose(late.stats[name], early.stats[name], rtol=1e-9, atol=1e-9 * mean)


def test_a_small_job_that_never_waits_has_slowdown_one() -> None:
    """Durations must keep their digits beside the clock's reading: here 1e-3 beside up to 1e9."""
    arrivals = np.arange(1, 10_001) * 1e5
    result = simulate(Workload(arrivals, np.full(arrivals.size, 1e-3)), "srpt", servers=1)
    assert result.max_slowdown == pytest.approx(1, rel=1e-9)


# ---- 12. and 14. what patience and service mean ------------------------------------------------------------


@pytest.mark.parametrize(("clock", "leaves"), [("queue", False), ("fractional", False), ("sojourn", True)])
@pytest.mark.parametrize(("policy", "servers"), possible(NO_LOSS, 1, 2, 40))
def test_patience_shorter_than_service(policy: str, servers: int, clock: str, leaves: bool) -> None:
    """A job that finds a free server is served, unless its clock runs in service too."""
    size = 8.0 * servers if policy == "super-server" else 2.0
    _, records = run(Workload([1], [size], [0.5]), policy, servers, clock=clock)
    assert records["outcome"].tolist() == [int(leaves)]
    assert records["departure_time"][0] == (1.5 if leaves else 1 + size / (servers if size > 2 else 1))


@pytest.mark.parametrize("patience", [0.0, math.inf])
@pytest.mark.parametrize("clock", CLOCKS)
@pytest.mark.parametrize(("policy", "servers"), possible(NO_LOSS, 1, 40))
def test_no_patience_and_endless_patience(policy: str, servers: int, clock: str, patience: float) -> None:
    jobs = 100
    result, records = run(
        Workload(np.arange(jobs) / 64, np.ones(jobs), np.full(jobs, patience)), policy, servers, clock=clock
    )
    if patience == math.inf:
        free, _ = run(Workload(np.arange(jobs) / 64, np.ones(jobs)), policy, servers)
        assert result.stats["response_sum"].tolist() == free.stats["response_sum"].tolist()
        return
    gone = records["outcome"] == 1
    if clock == "sojourn":
        assert gone.all()
        np.testing.assert_array_equal(records["departure_time"], records["arrival_time"])
    elif policy != "super-server":
        assert (~gone).any()
    assert (records["waiting_time"] == 0).all()


# ---- 19. numbers that are none -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("column", "value"),
    [
        *itertools.product(("arrival_times", "sizes", "patience"), (math.nan, -1.0, -math.inf)),
        *(("arrival_times", math.inf), ("sizes", math.inf), ("sizes", 0.0)),
    ],
)
def test_a_time_or_size_that_is_none_is_refused(column: str, value: float) -> None:
    columns = {"arrival_times": [0.0, 0.0, 2.0], "sizes": [1.0, 1.0, 1.0], "patience": [1.0, 1.0, 1.0]}
    columns[column][1] = value
    with pytest.raises(ValueError, match=rf"{column}\[1\].*got {value}"):
        Workload(**columns)
