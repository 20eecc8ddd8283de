"""Laws that every run obeys, whatever the policy: long runs, and sizes of very different magnitude."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

from queue_env import Comparison, Result, Workload, law, scenario, simulate
from queue_env.plan import make_plan
from queue_env.system import System
from queue_env.workload import Chunk
from tests.strategies import CLOCKS

CONSERVING = (
    "fcfs", "lcfs", "plcfs", "srpt", "psjf", "sjf", "ps", "las", "split", "dynasplit", "backlog-split",
)  # fmt: skip
EVERY = (*CONSERVING, "thresh-split", "super-server")
# Without dynasplit, which needs spare capacity.
IMPATIENT = tuple(name for name in (*EVERY, "loss-priority", "two-class:tau=1") if name != "dynasplit")


def random_workload(seed: int, servers: int, load: float, jobs: int, patience: float | None = None) -> Workload:
    rng = np.random.default_rng(seed)
    sizes = law({"law": "pareto", "alpha": 1.5, "mean": 1.0}).sample(rng, jobs)
    arrivals = np.cumsum(rng.exponential(sizes.mean() / (load * servers), jobs))
    return Workload(arrivals, sizes, None if patience is None else rng.exponential(patience, jobs))


def attained_by_the_present(system: System) -> float:
    """Service that the jobs present have had, by a walk over the memory of the index family."""
    memory, now = system.memory, system.memory.system[0]["now"]
    total = 0.0
    for slot in np.flatnonzero(memory.jobs["number"] >= 0):
        job = memory.jobs[slot]
        total += job["size"] - job["remaining"]
    for entry in memory.service[: system.memory.system[0]["in_service"]]:
        job = memory.jobs[entry["slot"]]
        total += job["remaining"] - (entry["key"] - now) * system.setting.speed
    return total


def system_amid(name: str, policy: str, jobs: int) -> System:
    """The system of a policy in the middle of a long run."""
    plan = make_plan(name, [policy], jobs=jobs, warmup=0, streams=1)
    system = plan.system(plan.settings[0], 0)
    for chunk in plan.chunks(0):
        if system.feed(chunk) or system.memory.system[0]["arrived"] >= jobs - 40_000:
            return system
    raise AssertionError


# ---- conservation -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "count"), [("high-load-2", 1_000_000), ("low-load-4", 400_000), ("light-2", 400_000)])
def test_long_runs_conserve_work_and_obey_littles_law(name: str, count: int) -> None:
    model = scenario(name)
    runs = simulate(model, list(EVERY), jobs=count, seed=1)
    for policy, result in runs.items():
        assert result.little_law_gap < 1e-10, policy
        assert result.utilisation <= 1 + 1e-12, policy
        assert result.present == 0, policy
        # The sizes are the same for all, but who is counted in the window is not.
        assert result.utilisation == pytest.approx(runs["fcfs"].utilisation, rel=0.02), policy
    assert_ordered(runs)


def assert_ordered(runs: Comparison) -> None:
    """Orders that hold on every sample path or, here, by far: a bound, and optimality on average."""
    means = {policy: result.mean_response for policy, result in runs.items()}
    assert means["super-server"] == min(means.values())
    assert means["srpt"] <= means["fcfs"]
    assert means["psjf"] <= means["sjf"] * 1.001


@pytest.mark.parametrize("policy", EVERY)
@pytest.mark.parametrize("servers", [2, 40])
def test_all_work_that_comes_is_done(policy: str, servers: int) -> None:
    workload = random_workload(2, servers, 0.8, 200_000)
    result = simulate(workload, policy, servers=servers)
    assert result.busy_area[0] == pytest.approx(workload.sizes.sum(), rel=1e-10)
    assert result.stats["size_sum"].sum() == pytest.approx(workload.sizes.sum(), rel=1e-12)
    assert result.little_law_gap < 1e-10


@pytest.mark.parametrize("clock", CLOCKS)
@pytest.mark.parametrize(("servers", "jobs"), [(1, 50_000), (3, 200_000), (50, 50_000)])
def test_busy_time_is_the_work_of_the_served_and_what_the_others_had(servers: int, jobs: int, clock: str) -> None:
    workload = random_workload(3, servers, 1.3, jobs, patience=2.0)
    names = [name for name in IMPATIENT if (name, servers) != ("thresh-split", 1)]
    plan = make_plan(workload, names, servers=servers, clock=clock)
    for setting in plan.settings:
        system = plan.system(setting, 0)
        for chunk in plan.chunks(0):
            system.feed(chunk)
        system.drain()
        end = system.memory.system[0]
        label = setting.policy.label
        assert end["number"] == end["deadlines"] == end["waiting"] == end["in_service"] == 0, label
        assert end["busy_area"] == pytest.approx(end["work_done"], rel=1e-10), label
        assert end["busy_area"] <= servers * (end["origin"] + end["origin_low"] + end["now"]), label
        assert system.measures()["little_gaps"] < 1e-10, label
        served = system.memory.stats["size_sum"].sum()
        assert served <= end["work_done"] * (1 + 1e-12), label
        if clock == "queue" and label in ("fcfs", "lcfs", "sjf", "ps"):  # who is in service stays
            assert served == pytest.approx(end["work_done"], rel=1e-10), label


@pytest.mark.parametrize("policy", ["fcfs", "lcfs", "plcfs", "srpt", "psjf", "sjf", "super-server"])
@pytest.mark.parametrize("name", ["high-load-2", "high-load-10"])
def test_busy_time_counts_those_in_the_middle_of_their_service(policy: str, name: str) -> None:
    system = system_amid(name, policy, 300_000)
    done = system.memory.system[0]["work_done"] + attained_by_the_present(system)
    assert system.memory.system[0]["busy_area"] == pytest.approx(done, rel=1e-11)


@pytest.mark.parametrize("clock", [None, *CLOCKS])
@pytest.mark.parametrize("policy", IMPATIENT)
def test_rates_stay_within_the_capacity_at_all_times(policy: str, clock: str | None) -> None:
    """The memory between small chunks: total rate, and the rates of the anchor, the partial job and the shares."""
    servers = 3
    workload = random_workload(4, servers, 1.1, 3000, None if clock is None else 3.0)
    plan = make_plan(workload, [policy], servers=servers, clock=clock)
    system = plan.system(plan.settings[0], 0)
    for start in range(0, len(workload), 7):
        system.feed(chunk_of(workload, slice(start, start + 7)))
        state = system.memory.system[0]
        present = int((system.memory.jobs["number"] >= 0).sum())
        assert present == state["number"]
        assert 0 <= state["busy"] <= servers + 1e-12
        for rate in (state["anchor_rate"], state["partial_rate"], state["share"]):
            assert 0 <= rate <= 1
        if policy not in ("thresh-split", "super-server", "loss-priority"):
            assert state["busy"] == pytest.approx(min(present, servers), abs=1e-12)


def chunk_of(workload: Workload, part: slice) -> Chunk:
    columns = (workload.arrival_times, workload.sizes, workload.patience)
    return Chunk(*(None if column is None else column[part].copy() for column in columns))  # type: ignore[arg-type]


# ---- jobs one by one --------------------------------------------------------------------------------------


@pytest.mark.parametrize("clock", [None, *CLOCKS])
@pytest.mark.parametrize("servers", [2, 40])
@pytest.mark.parametrize("policy", IMPATIENT)
def test_nobody_is_served_before_the_arrival_or_after_the_departure(
    policy: str, servers: int, clock: str | None
) -> None:
    workload = random_workload(5, servers, 1.1, 20_000, None if clock is None else 4.0)
    result = simulate(workload, policy, servers=servers, records=True, clock=clock)
    records = result.records
    assert records is not None
    arrival, start, departure = (records[f"{name}_time"] for name in ("arrival", "start", "departure"))
    waiting, served = records["waiting_time"], records["outcome"] == 0
    slack = 4 * np.spacing(departure)
    begun = ~np.isnan(start)
    assert begun[served].all()
    assert (start[begun] >= arrival[begun] - slack[begun]).all()
    assert (start[begun] <= departure[begun] + slack[begun]).all()
    assert (waiting >= 0).all()
    assert (waiting <= departure - arrival + slack).all()
    speed = servers if policy == "super-server" else 1
    in_system = departure - arrival
    assert (in_system[served] >= workload.sizes[served] / speed * (1 - 1e-9) - slack[served]).all()
    if policy not in ("ps", "las", "backlog-split"):  # all rates are 0 or the speed
        service = workload.sizes[served] / speed
        np.testing.assert_allclose(in_system[served], waiting[served] + service, rtol=1e-9, atol=1e-8)


@pytest.mark.parametrize("servers", [1, 4])
def test_the_system_empties_at_the_same_times_under_all_policies_of_one_server(servers: int) -> None:
    """Busy periods depend on the arriving work alone: on one server, or on one of speed n."""
    workload = random_workload(6, servers, 0.7, 20_000)
    names = [name for name in CONSERVING if servers == 1] or ["super-server"]
    ends = busy_period_ends(workload, servers)
    for policy in names:
        result = simulate(workload, policy, servers=servers, records=True)
        assert result.records is not None
        times = np.sort(result.records["departure_time"])
        nearest = times[np.minimum(np.searchsorted(times, ends - 1e-7), times.size - 1)]
        np.testing.assert_allclose(nearest, ends, rtol=1e-12, atol=1e-7, err_msg=policy)


def busy_period_ends(workload: Workload, speed: int) -> NDArray[np.float64]:
    """By Lindley's recursion for the work in the system."""
    ends, free = [], float(workload.arrival_times[0])
    for arrival, size in zip(workload.arrival_times.tolist(), workload.sizes.tolist(), strict=True):
        if arrival > free:
            ends.append(free)
        free = max(free, arrival) + size / speed
    return np.array(ends[1:])


# ---- rounding ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("big", "tiny", "precision"), [(1e9, 1e-3, 1e-12), (1e9, 1.0, 1e-12), (1e9, 1e-9, 1e-11)])
@pytest.mark.parametrize("policy", ["srpt", "plcfs", "psjf", "ps", "las", "super-server", "dynasplit:delta=0.5"])
def test_a_job_preempted_a_million_times_ends_when_it_should(
    policy: str, big: float, tiny: float, precision: float
) -> None:
    jobs = 1_000_000 if policy == "srpt" else 100_000
    rng = np.random.default_rng(7)
    sizes = np.concatenate(([big], rng.uniform(0.5, 1.5, jobs) * tiny))
    arrivals = np.concatenate(([0.0], np.cumsum(rng.uniform(0.5, 1.5, jobs) * 0.9 * big / jobs)))
    end = float(sum(map(Fraction, sizes.tolist())))
    result = simulate(Workload(arrivals, sizes), policy, servers=1, records=True)
    assert result.records is not None
    assert result.records["departure_time"][0] == pytest.approx(end, rel=precision)
    assert result.max_response == pytest.approx(end, rel=precision)
    assert result.stats["served"].sum() == jobs + 1


@pytest.mark.parametrize("policy", [*(name for name in EVERY if name != "dynasplit"), "dynasplit:delta=0.5"])
@pytest.mark.parametrize("servers", [2, 40])
def test_sizes_over_eighteen_decades(policy: str, servers: int) -> None:
    rng = np.random.default_rng(8)
    sizes = 10.0 ** rng.uniform(-9, 9, 5000)
    arrivals = np.cumsum(10.0 ** rng.uniform(-9, 8, 5000))
    result: Result = simulate(Workload(arrivals, sizes), policy, servers=servers)
    assert result.stats["served"].sum() == 5000
    assert result.busy_area[0] == pytest.approx(sizes.sum(), rel=1e-10)
    assert result.little_law_gap < 1e-10
    assert result.stats["slowdown_sum"].sum() >= 5000 * (1 / servers if policy == "super-server" else 1)
