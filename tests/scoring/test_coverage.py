"""How often the intervals hold the true value.

Of 200 intervals of 95 %, between 90 % and 98 % hold it, at each of three times: with a true coverage of 95 % a
correct estimator would fail for a fraction of at most 0.01 of the choices of seeds.
"""

from __future__ import annotations

import numpy as np

from queue_env import Scenario
from queue_env.plan import make_plan
from queue_env.scoring.blocks import Blocks
from queue_env.scoring.decomposition import decompose
from queue_env.scoring.strata import Strata
from tests.scoring.small import short_replications

REPETITIONS = 200
LOAD = 0.6


def test_intervals_hold_the_true_value_as_often_as_they_say() -> None:
    model = Scenario.from_dict({"servers": 1, "load": LOAD, "sizes": {"law": "exponential", "mean": 1.0}})
    times = np.array([0.0, 1.0, 4.0, 10.0])
    setting = make_plan(model, ["fcfs"]).settings[0]
    strata = Strata(model.sizes, np.array([1.0, 0.75, 0.5, 0.25, 0.1, 0.01, 1e-3, 1e-4, 0.0]))
    exact = np.exp(-(1 - LOAD) * times)

    def make(level: int) -> Blocks:
        return Blocks(model, setting, strata, times, level, 300, 3200, 16, np.eye(len(times)))

    wanted = np.full(len(times), 0.3)
    held = np.zeros(len(times))
    with short_replications():
        for seed in range(REPETITIONS):
            found = decompose(make, [1], wanted, seed=seed, most_jobs=2e5, threads=2, progress=False)
            assert len(found.sums) >= 20
            low, high = found.estimate.ends()
            held += (low <= exact) & (exact <= high)
            total = found.total
            held[0] += (abs(total.value - 1) <= total.half_width()).item() - 1
    share = held / REPETITIONS
    assert np.all(share >= 0.9), share
    assert np.all(share <= 0.98), share
