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
        found = small.measures(["backlog-split", "backlog-split:b=1.1"], seeds, pool, lambda: None)
    one, other = found[:, :, 0]
    assert 0 < np.std(one - other, ddof=1) < np.std(one, ddof=1) / 3


def test_replications_do_not_depend_on_threads_and_are_counted(small: Objective) -> None:
    policies, seeds = ["srpt", random_policy(3)], np.random.SeedSequence(7).spawn(3)
    counted: list[int] = []
    found = []
    for threads in (1, 2):
        with ThreadPoolExecutor(threads) as pool:
            found.append(small.measures(policies, seeds, pool, lambda: counted.append(1)))
    np.testing.assert_array_equal(found[0], found[1])
    assert found[0].shape == (2, 3, small.columns.shape[1])
    assert len(counted) == 12
    assert found[0][1, 2, 0] == small.measure(policies[1], seeds[2])[0]


def test_runs_cost_what_they_are_allowed_and_rarer_classes_have_fewer(small: Objective) -> None:
    jobs = small.strata.expected_jobs(small.model, float(small.times[-1])) + 30
    assert small.counts @ jobs == pytest.approx(4e4)
    larger = np.flatnonzero(small.strata.medians > 3)[:-1]  # the last is wider
    assert np.all(np.diff(small.counts[larger]) < 0)
    assert np.all(small.counts > 0)


@pytest.mark.parametrize("tail_range", [(1.0, 100.0), (100.0, 1e5)])
def test_every_class_has_runs_whatever_the_range(tail_range: tuple[float, float]) -> None:
    """Jobs of sizes that cost nothing by themselves may be late all the same."""
    objective = make_objective(scenario("high-load-2"), tail_range)
    assert np.all(objective.counts > 0)
    assert objective.times[[1, -1]] == pytest.approx(tail_range)


def test_the_normalised_tail_comes_with_the_score(small: Objective) -> None:
    seeds = np.random.SeedSequence(8).spawn(40)
    with ThreadPoolExecutor(2) as pool:
        found = small.measures(["srpt"], seeds, pool, lambda: None)[0]
    times = small.times[1 : found.shape[1]]
    assert times[-1] == pytest.approx(100 * small.model.sizes.mean)
    plain = simulate(small.model, ["srpt"], jobs=4_000_000, seed=1)["srpt"]
    at = np.searchsorted(times, [1.0, 10.0])
    estimate = jackknife(np.column_stack([np.ones(40), found[:, 1 + at]]), lambda part: part[..., 1:] / part[..., :1])
    expected = plain.tail(times[at]) / small.model.sizes.tail(small.model.c * times[at])
    half = estimate.half_width() * special.stdtrit(39, (1 + LEVEL) / 2) / special.stdtrit(39, 0.975)
    assert np.all(half < 0.3 * expected)
    assert np.all(abs(estimate.value - expected) < half + 0.01 * expected)


def test_what_a_run_meets_does_not_depend_on_the_runs_before_it() -> None:
    model = scenario("high-load-2")
    objective = make_objective(model)
    blocks = objective.blocks("srpt")
    tasks = blocks._tasks(np.array([30.0, 30.0, 500.0, 30.0]))
    pools = blocks._pools(np.random.default_rng(3), tasks)
    tasks["place"] = [7, 400, 2**19 - 50, 7]
    memory = next(iter(blocks._snapshots(model.stream(np.random.SeedSequence(4)), np.array([30_000]))))
    done, above = blocks._run(memory, tasks, pools)
    assert done["jobs"][2] > 50  # beyond the end of the numbers
    assert done["jobs"][0] == done["jobs"][3]
    np.testing.assert_array_equal(above[0], above[3])
    assert done["jobs"][0] != done["jobs"][1]


def test_a_policy_under_which_blocks_do_not_end_is_the_worst(small: Objective, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise ValueError("a block has not ended")

    monkeypatch.setattr(CoupledBlocks, "replicate", refuse)
    assert small.measure("srpt", np.random.SeedSequence(1))[0] == UNSTABLE


@pytest.mark.parametrize(("name", "message"), [("light-2", "of a heavy tail"), ("impatient-100", "patience")])
def test_scenarios_without_such_a_score_are_refused(name: str, message: str) -> None:
    with pytest.raises(ValueError, match=f"training: .*{message}"):
        make_objective(scenario(name))
