"""The objective of the search: its replications see the tail as it is, and all policies meet the same jobs in them.

Of the estimates 8 are checked by 99.9 % intervals (Student's, over independent replications): a correct estimator would
fail one of them for a fraction of at most 0.008 of the choices of seeds.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import special

from queue_env import scenario, simulate
from queue_env.plan import make_plan
from queue_env.scoring.strata import make_strata
from queue_env.tail import jackknife, quotient
from tests.networks import random_policy
from tests.train.small import make_small
from train.objective import UNSTABLE, CoupledBlocks, Objective, make_objective

Floats = NDArray[np.float64]

LEVEL, REPLICATIONS = 0.999, 12
TIMES = np.array([0.0, 1.0, 3.0, 10.0, 30.0])
MODELS: dict[str, Any] = {
    "light": scenario({"servers": 2, "load": 0.8, "sizes": {"law": "exponential", "mean": 1.0}}),
    "heavy": scenario("high-load-2"),
}
POLICIES: dict[str, Any] = {"light": "srpt", "heavy": random_policy(11, (3,))}


@pytest.mark.parametrize("name", MODELS)
def test_the_tail_is_that_of_a_plain_run(name: str) -> None:
    model, policy = MODELS[name], POLICIES[name]
    strata = make_strata(model.sizes, model.c * TIMES[-1])
    setting = make_plan(model, [policy]).settings[0]
    blocks = CoupledBlocks(model, setting, strata, TIMES, 4, 20_000, 512 * 400, 512, np.eye(len(TIMES)))
    counts = np.clip(3000 / blocks.expected_jobs(), 0.2, 100)
    found = [blocks.replicate(np.random.SeedSequence([1, i]), counts) for i in range(REPLICATIONS)]
    sums = np.array([blocks.probabilities @ (r.totals / r.counts[:, None]) for r in found])
    tail = jackknife(sums, lambda part: quotient(part[..., 1:], part[..., :1]))
    label = policy if isinstance(policy, str) else policy.name
    plain = simulate(model, [policy], jobs=4_000_000, seed=1)[label]
    low, high = plain.tail_interval(TIMES[1:])
    both = np.hypot(tail.half_width() / special.stdtrit(REPLICATIONS - 1, 0.975), (high - low) / 2 / 2.09)
    assert np.all(both[:3] < 0.1 * plain.tail(TIMES[1:4]))
    difference = abs(tail.value - plain.tail(TIMES[1:]))
    assert np.all(difference <= special.stdtrit(REPLICATIONS - 1, (1 + LEVEL) / 2) * both), (tail.value, both)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> Objective:
    make_small(monkeypatch)
    return make_objective(scenario("high-load-2"))


def test_near_policies_differ_by_far_less_than_replications_do(small: Objective) -> None:
    seeds = np.random.SeedSequence(6).spawn(20)
    with ThreadPoolExecutor(2) as pool:
        one, other = small.estimates(["backlog-split", "backlog-split:b=1.1"], seeds, pool, lambda: None)
    assert 0 < np.std(one - other, ddof=1) < np.std(one, ddof=1) / 3


def test_replications_do_not_depend_on_threads_and_are_counted(small: Objective) -> None:
    policies, seeds = ["srpt", random_policy(3)], np.random.SeedSequence(7).spawn(3)
    counted: list[int] = []
    found = []
    for threads in (1, 2):
        with ThreadPoolExecutor(threads) as pool:
            found.append(small.estimates(policies, seeds, pool, lambda: counted.append(1)))
    np.testing.assert_array_equal(found[0], found[1])
    assert found[0].shape == (2, 3)
    assert len(counted) == 12
    assert found[0][1, 2] == small.estimate(policies[1], seeds[2])


def test_no_class_takes_more_than_its_share_of_the_work(small: Objective) -> None:
    work = small.counts * (small.blocks("srpt").expected_jobs() + 1000)
    assert work.sum() == pytest.approx(4e4, rel=0.02)
    assert np.all(work <= 0.1 * 4e4)
    sizes = small.strata.medians
    middle = work[(sizes > 20) & (sizes < 0.4e4)]  # whose large jobs all add about as much to the score
    assert middle.max() < 2 * middle.min()


def test_a_policy_under_which_blocks_do_not_end_is_the_worst(small: Objective, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise ValueError("a block has not ended")

    monkeypatch.setattr(CoupledBlocks, "replicate", refuse)
    assert small.estimate("srpt", np.random.SeedSequence(1)) == UNSTABLE


@pytest.mark.parametrize(("name", "message"), [("light-2", "of a heavy tail"), ("impatient-100", "patience")])
def test_scenarios_without_such_a_score_are_refused(name: str, message: str) -> None:
    with pytest.raises(ValueError, match=f"train.es: .*{message}"):
        make_objective(scenario(name))
