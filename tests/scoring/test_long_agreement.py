"""Tail curves beside plain runs of 10⁸ jobs, at every time where these see a thousand events; run by `-m long`.

Intervals are Student's, joint over the times, at 99.9 %, seeds are fixed: with 20 policies, correct code would fail for
a fraction of at most 0.02 of the choices of seeds.
"""

from __future__ import annotations

import numpy as np
import pytest

from queue_env import simulate, tail_curve
from queue_env.scenarios import scenario
from queue_env.scoring.curve import default_times
from tests.scoring.small import LEVEL, standard_error, student, total_within

JOBS, EVENTS = 1e8, 1000
STREAMS = 20  # of a plain run, at least: its intervals are Student's over so many
CASES = [
    *((policy, "high-load-2") for policy in (
        "srpt", "psjf", "ps", "las", "plcfs", "split", "thresh-split", "dynasplit", "dynasplit:margin=power",
        "backlog-split", "super-server",
    )),
    *((policy, "high-load-4") for policy in ("srpt", "split", "dynasplit", "backlog-split")),
    *((policy, "light-2") for policy in ("srpt", "fcfs", "lcfs", "sjf", "dynasplit")),
]  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize(("policy", "name"), CASES)
def test_agrees_with_a_plain_run_of_a_hundred_million_jobs(policy: str, name: str) -> None:
    (plain,) = simulate(name, [policy], jobs=JOBS, seed=2).values()
    times = default_times(scenario(name))
    times = times[plain.events(times) >= EVENTS]
    assert len(times) >= 3
    curve = tail_curve(policy, name, times, rel_half_width=0.05, seed=1, most_jobs=5e8)
    low, high = plain.tail_interval(times)
    error = np.hypot(standard_error(curve), (high - low) / 2 / student(0.95, STREAMS))
    gap = abs(curve.tail - plain.tail(times))
    print(policy, name, "R", np.round(curve.normalised_tail, 3), "off by", np.round(gap / error, 2))
    assert total_within(curve), curve.total
    assert np.all(gap <= student(1 - (1 - LEVEL) / len(times), STREAMS) * error), (curve.tail, plain.tail(times), error)
