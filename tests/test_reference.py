"""The exact simulator against runs traced by hand, and against laws that every run must obey."""

# Fractions are compared with the plain numbers that they equal.
# mypy: disable-error-code="comparison-overlap"

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings

from tests.reference import POLICIES, Allocation, Result, System, simulate
from tests.strategies import ALL_POLICIES, Case, Workload, cases, workloads

SERVED, LOST, PRESENT = 0, 1, 2
WITHOUT_LOSS = tuple(name for name in ALL_POLICIES if name != "loss-priority")
ONE_SERVER_A_JOB = tuple(name for name in WITHOUT_LOSS if name not in ("thresh-split", "super-server"))

properties = settings(max_examples=60, deadline=None, derandomize=True)


def departures(arrivals: Sequence[float], sizes: Sequence[float], *args: Any, **kwargs: Any) -> list[Any]:
    return list(simulate(arrivals, sizes, *args, **kwargs).departure_times)


def test_every_policy_of_the_specification_is_there() -> None:
    assert set(POLICIES) == set(ALL_POLICIES)


def test_fcfs() -> None:
    run = simulate([0, 1, 2], [3, 1, 1], "fcfs", 1)
    assert run.start_times == (0, 3, 4)
    assert run.departure_times == (3, 4, 5)
    assert run.waiting_times == (0, 2, 2)
    assert departures([0, 0, 0, 1], [3, 2, 2, 1], "fcfs", 2) == [3, 2, 4, 4]


def test_lcfs_waits_for_the_server_and_plcfs_does_not() -> None:
    # At 3 the later of the two that wait goes first.
    assert departures([0, 1, 2], [3, 1, 1], "lcfs", 1) == [3, 5, 4]
    # Job 1 runs 1-2, job 2 (which arrives as job 1 completes) 2-3, job 0 has 2 left.
    run = simulate([0, 1, 2], [3, 1, 1], "plcfs", 1)
    assert run.departure_times == (5, 2, 3)
    assert run.waiting_times == (2, 0, 0)


def test_plcfs_takes_a_batch_in_order_of_job_number() -> None:
    assert departures([0, 1, 1], [2, 1, 1], "plcfs", 1) == [4, 2, 3]


def test_srpt() -> None:
    # At 1 the remaining sizes are 3, 2 and 1: job 2 takes the server of job 0. At 2 job 0 is back. At 2.5 it
    # has 2.5 left, when job 3 arrives with as much: that waits until job 1 completes at 3.
    run = simulate([0, 0, 1, 2.5], [4, 3, 1, 2.5], "srpt", 2)
    assert run.start_times == (0, 0, 1, 3)
    assert run.departure_times == (5, 3, 2, 5.5)
    assert run.waiting_times == (1, 0, 0, 0.5)


def test_psjf_looks_at_original_sizes_and_sjf_does_not_preempt() -> None:
    # At 2 job 0 has 1 left, which is less than 2, but its size is more.
    assert departures([0, 2], [3, 2], "srpt", 1) == [3, 5]
    assert departures([0, 2], [3, 2], "psjf", 1) == [5, 4]
    assert departures([0, 1, 2], [3, 2, 1], "psjf", 1) == [6, 4, 3]
    assert departures([0, 1, 2], [3, 2, 1], "sjf", 1) == [3, 6, 4]


def test_ps() -> None:
    # Three jobs at 2/3 each until 3/2, then two at 1.
    run = simulate([0, 0, 0], [1, 2, 3], "ps", 2)
    assert run.departure_times == (1.5, 2.5, 3.5)
    assert run.waiting_times == (0, 0, 0)
    # Thirds are exact: 1/3 each until 3.
    assert departures([0, 0, 0], [1, 1, 1.5], "ps", 1) == [3, 3, Fraction(7, 2)]


def test_las_on_one_server() -> None:
    # Job 1 runs alone from 1 until it has had 1 as well, at 2. They share until it has had 2, at 4.
    run = simulate([0, 1], [3, 2], "las", 1)
    assert run.departure_times == (5, 4)
    assert run.waiting_times == (1, 0)


def test_las_levels_share_what_lower_levels_leave() -> None:
    # From 1 on job 2 is at rate 1, jobs 0 and 1 at 1/2. They meet at time 3, all having had 2. From there on
    # all three are at 2/3: at 4.5 job 2 has had 3. The others have 1 left and a server each.
    run = simulate([0, 0, 1], [4, 4, 3], "las", 2)
    assert run.departure_times == (5.5, 5.5, 4.5)


def test_split_gives_a_server_to_the_largest_at_once() -> None:
    # Job 0 is the largest. On the other server job 1 runs 0-1 and job 2 1-3. Job 3 takes the server of the
    # largest at 2, where job 0 has 3 left, more than job 2; it goes on at 3.
    run = simulate([0, 0, 0, 2], [5, 1, 2, 6], "split", 2)
    assert run.departure_times == (6, 1, 3, 8)
    assert run.waiting_times == (1, 0, 1, 0)
    # Of equal size, the earlier one keeps it; job 3 waits for the other server.
    assert departures([0, 0, 0, 2], [5, 1, 2, 5], "split", 2) == [5, 1, 3, 8]
    # On one server it is: largest original size first.
    assert departures([0, 1, 2], [2, 3, 1], "split", 1) == [5, 4, 6]


def test_thresh_split_never_shares() -> None:
    # Jobs 1 and 2 are large, and have one server though the other is free from 3 on. A size of d is small.
    run = simulate([0, 0, 0, 0.5], [2, 3, 4, 1], "thresh-split", 2, parameters={"d": 2})
    assert run.departure_times == (3, 3, 7, 1.5)
    # Without a server for them, small jobs stay for ever.
    assert simulate([0], [1], "thresh-split", 1, parameters={"d": 2}).outcomes == (PRESENT,)


def a_quarter(delta: float) -> dict[str, Any]:
    """The arguments that make the margin a quarter of the spare capacity, at every size."""
    return {"delta": delta, "parameters": {"margin": lambda size: delta / 4}}


def test_dynasplit_traced_by_hand() -> None:
    # delta = 1 and a margin of 1/4 at every size: the anchor at 3/4, the second of the others at 1/4.
    #
    # time     | remaining sizes (a: anchor)                    | what happens; the rates in the same order
    # 0        | 0a: 4                                          | 0 finds an empty system; 1
    # 1        | 0a: 3, 1: 6                                    | 1 is larger, but not the anchor; 1 1
    # 2        | 0a: 2, 1: 5, 2: 2                              | 2 arrives; 3/4 1/4 1
    # 4        | 0a: 1/2, 1: 9/2                                | 2 completes; 1 1
    # 4 1/8    | 0a: 3/8, 1: 35/8, 3: 1                         | 3 arrives; 3/4 1/4 1
    # 4 5/8    | 1a: 17/4, 3: 1/2                               | 0 completes, 1 is the largest; 1 1
    # 5        | 1a: 31/8, 3: 1/8, 4: 6                         | 4 arrives; 3/4 1 1/4
    # 5 1/8    | 1a: 121/32, 4: 191/32                          | 3 completes; 1 1
    # 5 29/32  | 1a: 3, 4: 166/32, 5: 8                         | 5 arrives, the largest; 3/4 1 1/4
    # 6 29/32  | 1a: 9/4, 4: 134/32, 5: 31/4, 6: 1              | 6 arrives; 3/4 1/4 0 1
    # 7 29/32  | 1a: 3/2, 4: 126/32, 5: 31/4                    | 6 completes; 3/4 1 1/4
    # 9 29/32  | 4: 62/32, 5a: 29/4                             | 1 completes, 5 is the largest; 1 1
    # 10 29/32 | 4: 30/32, 5a: 25/4, 7: 2                       | 7 arrives; 1 3/4 1/4
    # 11 27/32 | 5a: 355/64, 7: 113/64                          | 4 completes; 1 1
    # 13 39/64 | 5a: 242/64                                     | 7 completes
    # 17 25/64 |                                                | 5 completes
    arrivals = [0, 1, 2, 4.125, 5, 5 + 29 / 32, 6 + 29 / 32, 10 + 29 / 32]
    sizes = [4, 6, 2, 1, 6, 8, 1, 2]
    run = simulate(arrivals, sizes, "dynasplit", 2, **a_quarter(1.0))
    last = (11 + 27 / 32, 17 + 25 / 64, 7 + 29 / 32, 13 + 39 / 64)
    assert run.departure_times == (4.625, 9 + 29 / 32, 4, 5.125, *last)
    assert run.start_times == tuple(arrivals)
    assert run.waiting_times == (0, 0, 0, 0, 0, 1, 0, 0)
    assert run.conditioning.exact


def test_dynasplit_takes_the_earlier_of_two_largest() -> None:
    # Job 0 is the anchor at 3/4, jobs 1 and 2 are at 1 and 1/4, job 3 waits. At 4/3 job 0 completes, where
    # 8/3, 11/3 and 4 are left. Job 1 is the anchor, at 3/4 for 32/9 more, jobs 2 and 3 are at 1 and 1/4.
    run = simulate([0, 0, 0, 0], [1, 4, 4, 4], "dynasplit", 2, **a_quarter(1.0))
    assert run.departure_times[:2] == (Fraction(4, 3), Fraction(4, 3) + Fraction(32, 9))
    assert run.start_times == (0, 0, 0, Fraction(4, 3))


def test_dynasplit_never_serves_the_anchor_faster_than_one() -> None:
    # delta - margin = 9/8, so the anchor has a whole server, and job 2 nothing until job 1 completes.
    run = simulate([0, 0, 0], [4, 1, 2], "dynasplit", 2, **a_quarter(1.5))
    assert run.start_times == (0, 0, 1)
    assert run.departure_times == (4, 1, 3)


def test_dynasplit_default_margin() -> None:
    # One server, delta = 1/2: job 0 of size 1 at 1/2 - (1/2)/(2 + ln 2) until job 1 completes.
    gamma = 0.5 - 0.5 / (2 + math.log(2))
    run = simulate([0, 0], [1, 0.25], "dynasplit", 1, delta=0.5).arrays()
    assert run["departure_times"] == pytest.approx([1.25, 0.25 / (1 - gamma)], rel=1e-15)


def test_backlog_split_switches_between_events() -> None:
    # The anchor is job 0 and the threshold 4^(1/2) = 2. The others have 2 + 3, and at rate 1 each come down
    # to it at 3/2. Then job 0 (4 left) and job 1 (1/2) run, and from 2 on jobs 0 (7/2) and 2 (3/2).
    run = simulate([0, 0, 0], [4, 2, 3], "backlog-split", 2, parameters={"b": 1, "kappa": 0.5})
    assert run.departure_times == (5.5, 2, 3.5)
    assert run.waiting_times == (1.5, 0, 0.5)
    assert run.start_times == (1.5, 0, 0)


def test_backlog_split_at_the_threshold_serves_the_anchor() -> None:
    # Job 1 brings exactly 2: on one server it waits until job 0 has gone.
    assert departures([0, 1], [4, 2], "backlog-split", 1, parameters={"b": 2, "kappa": 0}) == [4, 6]
    assert departures([0, 1], [4, 3], "backlog-split", 1, parameters={"b": 2, "kappa": 0}) == [5, 7]


def test_backlog_split_cannot_keep_a_completed_anchor() -> None:
    # Until jobs 0 and 1 complete at 4, the backlog is at most the threshold 4. Job 0 comes first and hands
    # the role to job 1, whose threshold 3 is below the backlog 7/2. Job 1 completes nevertheless.
    sizes = [4, 3, 1.75, 1.75]
    run = simulate([0, 1, 3.5, 3.5], sizes, "backlog-split", 2, parameters={"b": 1, "kappa": 1})
    assert run.departure_times == (4, 4, 5.75, 5.75)


def test_super_server() -> None:
    # At speed 2 job 0 has 3 left at 1/2, where job 1 takes 1/2.
    assert departures([0, 0.5], [4, 1], "super-server", 2) == [2.5, 1]


def test_loss_priority() -> None:
    # Class 1 is up to 1. At 1 job 2 takes the server of job 0, which has 4 left and job 1 only 2. At 1.5 job
    # 3 (class 2) finds no server, job 4 takes the one of job 1. At 1.75 both are with class 1: job 5 is lost.
    # At 2 job 2 completes before job 6 arrives.
    arrivals, sizes = [0, 0, 1, 1.5, 1.5, 1.75, 2], [5, 3, 1, 2, 1, 0.5, 7]
    run = simulate(arrivals, sizes, "loss-priority", 2, parameters={"tau": 1})
    assert run.outcomes == (LOST, LOST, SERVED, LOST, SERVED, LOST, SERVED)
    assert run.departure_times == (1, 1.5, 2, 1.5, 2.5, 1.75, 9)
    assert run.start_times == (0, 0, 1, None, 1.5, None, 2)
    assert run.attained[:2] == (1, 1.5)
    assert set(run.waiting_times) == {0}


def test_loss_priority_sends_away_the_later_of_two_equals() -> None:
    run = simulate([0, 0, 1], [3, 3, 1], "loss-priority", 2, parameters={"tau": 1})
    assert run.outcomes == (SERVED, LOST, SERVED)


def test_patience_ends_the_wait_in_the_queue() -> None:
    # Job 1 leaves at 2, so job 2 is next at 3.
    run = simulate([0, 1, 2], [3, 1, 1], "fcfs", 1, patience=[math.inf, 1, 2.5])
    assert run.outcomes == (SERVED, LOST, SERVED)
    assert run.start_times == (0, None, 3)
    assert run.departure_times == (3, 2, 4)
    assert run.waiting_times == (0, 1, 1)


def test_the_queue_clock_stands_in_service_and_is_not_redrawn() -> None:
    # Job 0 waits 1-2, is served 2-2.5, waits again and has waited 2 in all at 3.5.
    run = simulate([0, 1, 2.5], [4, 1, 2], "srpt", 1, patience=[2, 9, 9])
    assert run.departure_times == (3.5, 2, 4.5)
    assert run.waiting_times == (2, 0, 0)
    assert run.attained == (1.5, 1, 2)


@pytest.mark.parametrize(
    ("clock", "expected"),
    [
        ("queue", [8, 8]),  # both are served, at rate 1/2
        ("fractional", [5, 2]),  # the clock runs at 1/2: job 1 leaves at 2, where job 0 has 3 left
        ("sojourn", [4.5, 1]),  # job 1 leaves at 1, where job 0 has 3.5 left
    ],
)
def test_patience_clocks(clock: str, expected: list[float]) -> None:
    assert departures([0, 0], [4, 4], "ps", 1, patience=[math.inf, 1], clock=clock) == expected


def test_completion_comes_first_and_gives_the_server_to_who_would_leave() -> None:
    assert simulate([0, 0], [2, 1], "fcfs", 1, patience=[9, 2]).outcomes == (SERVED, SERVED)
    # The sojourn clock runs in service too.
    assert simulate([0, 0], [2, 1], "fcfs", 1, patience=[9, 2], clock="sojourn").outcomes == (SERVED, LOST)
    assert simulate([0], [2], "fcfs", 1, patience=[2], clock="sojourn").outcomes == (SERVED,)


def test_abandonment_comes_before_arrival() -> None:
    # At 2 job 0 loses patience, so job 1 finds the server free.
    arguments: dict[str, Any] = {"parameters": {"tau": 9}, "clock": "sojourn"}
    run = simulate([0, 2], [5, 1], "loss-priority", 1, patience=[2, 9], **arguments)
    assert run.outcomes == (LOST, SERVED)


def test_no_patience_at_all_is_a_loss_system() -> None:
    run = simulate([0, 0, 0, 1], [1, 2, 1, 1], "fcfs", 2, patience=[0, 0, 0, 0])
    assert run.outcomes == (SERVED, SERVED, LOST, SERVED)
    assert run.departure_times == (1, 2, 0, 2)
    assert simulate([0], [1], "fcfs", 1, patience=[0], clock="sojourn").outcomes == (LOST,)


def test_horizon() -> None:
    run = simulate([0, 1, 5], [2, 2, 1], "fcfs", 1, horizon=2.5)
    assert run.outcomes == (SERVED, PRESENT, PRESENT)
    assert run.attained == (2, 0.5, 0)
    assert run.departure_times == (2, None, None)
    assert simulate([0], [2], "fcfs", 1, horizon=2).outcomes == (SERVED,)


def test_a_policy_may_be_a_function() -> None:
    def at_half_rate(system: System) -> Allocation:
        return Allocation({job.number: Fraction(1, 2) for job in system.jobs[:1]})

    assert departures([0, 1], [1, 1], at_half_rate, 1) == [2, 4]


@pytest.mark.parametrize("rate", [Fraction(3, 2), Fraction(-1)])
def test_impossible_rates_are_refused(rate: Fraction) -> None:
    def impossible(system: System) -> Allocation:
        return Allocation({job.number: rate for job in system.jobs})

    with pytest.raises(AssertionError):
        simulate([0], [1], impossible, 2)


def test_margins() -> None:
    # The completion at 4 is 1 before the arrival at 5, relative 1/5; 4 and 3 remain at 1, of size 5: 1/5 too.
    run = simulate([0, 1, 5], [5, 3, 1], "srpt", 1)
    assert run.conditioning.priority_margin == pytest.approx(1 / 5)
    assert run.conditioning.event_margin == pytest.approx(1 / 5)
    assert run.conditioning.exact
    # 0.1 + 0.2 is not 0.3 in doubles, and neither is it here; 1e-9 is.
    assert simulate([0, 0.3], [0.1 + 0.2, 1], "fcfs", 1).margin == pytest.approx(2**-54 / 0.3)
    assert simulate([0, 1e-9], [1e-9, 1], "fcfs", 1).conditioning.ties == 1


@properties
@given(cases())
def test_every_run_is_lawful(case: Case) -> None:
    run = simulate(**case.arguments())
    workload = case.workload
    speed = workload.servers if case.policy.name == "super-server" else 1
    assert PRESENT not in run.outcomes
    for number, (arrival, size) in enumerate(zip(workload.arrival_times, workload.sizes, strict=True)):
        departure, start = run.departure_times[number], run.start_times[number]
        assert departure is not None
        assert (start is None) == (run.attained[number] == 0)
        assert start is None or arrival <= start <= departure
        assert 0 <= run.waiting_times[number] <= departure - Fraction(arrival)
        assert run.attained[number] <= speed * (departure - Fraction(arrival) - run.waiting_times[number])
        assert (run.outcomes[number] == SERVED) == (run.attained[number] == size)


@properties
@given(workloads(25, patience=False))
def test_fcfs_obeys_kiefer_and_wolfowitz(workload: Workload) -> None:
    free = [Fraction(0)] * workload.servers
    expected = []
    for arrival, size in zip(workload.arrival_times, workload.sizes, strict=True):
        free[0] = max(free[0], Fraction(arrival)) + Fraction(size)
        expected.append(free[0])
        free.sort()
    assert departures(workload.arrival_times, workload.sizes, "fcfs", workload.servers) == expected


@properties
@given(cases(WITHOUT_LOSS, max_jobs=25, patience=False))
def test_no_policy_beats_the_super_server_on_the_mean(case: Case) -> None:
    best = case.arguments() | {"policy": "super-server", "parameters": {}}
    assert total(simulate(**best)) <= total(simulate(**case.arguments()))


def total(run: Result) -> Fraction:
    return sum((time for time in run.departure_times if time is not None), Fraction(0))


@properties
@given(cases(ONE_SERVER_A_JOB, max_jobs=12, patience=False))
def test_with_a_server_for_each_all_policies_are_alike(case: Case) -> None:
    found = simulate(**case.arguments() | {"servers": len(case.workload.sizes)}).departure_times
    jobs = zip(case.workload.arrival_times, case.workload.sizes, strict=True)
    assert list(found) == [Fraction(arrival) + Fraction(size) for arrival, size in jobs]
