"""The states that `explain` looks at: against records of the same run, by hand, and what is a function of what."""

from __future__ import annotations

import math

import numpy as np
import pytest

import queue_env.explain.states as module
from queue_env import Workload, scenario, simulate
from queue_env.explain import anchor_law, visited_states
from queue_env.kernel.look import look
from queue_env.network import NAMES, Network, network_policy
from queue_env.plan import make_plan
from queue_env.settings import Setting
from queue_env.system import System
from queue_env.workload import Chunk
from tests.networks import random_policy

MODEL = scenario("high-load-2")


def setting(policy: object, model: object = MODEL) -> Setting:
    return make_plan(model, [policy]).settings[0]  # type: ignore[arg-type]


def test_features_by_hand() -> None:
    """Two servers, the anchor at rate one; half a unit of time after the third arrival."""
    system = System(setting("backlog-split:b=100"), counted=(0, 10), relative=True)
    system.feed(Chunk(np.array([0.0, 1.0, 2.0]), np.array([5.0, 3.0, 4.0]), None))
    module._wait(system, 0.5)
    seen = np.empty(len(NAMES))
    assert look(system.memory, 2.0, seen) == 1.0
    work_like = [5.0, 2.5, 2.5, 4.0, 0.5, 1.5, 5.5]
    expected = [math.log1p(x / 2.0) for x in work_like] + [math.log(3 / 2), math.log(2), 0.8, 0.4]
    np.testing.assert_allclose(seen, expected, rtol=1e-12)


def test_looks_are_before_arrivals_of_an_undisturbed_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_WARMUP", 100)
    looks, policy = 250, "backlog-split"
    states = visited_states(setting(policy), MODEL, looks, seed=5)
    stream, jobs = MODEL.stream(np.random.SeedSequence(5)), 100 + looks * module.APART
    workload = Workload(np.cumsum(stream.take("arrivals", jobs)), stream.take("sizes", jobs))
    records = simulate(workload, policy, servers=2, records=True).records
    assert records is not None
    at = workload.arrival_times[100 :: module.APART]
    arrived = np.arange(100, jobs, module.APART)
    present = arrived - np.sum(records["departure_time"] < at[:, None], axis=1)
    assert states.looks == looks
    np.testing.assert_allclose(2 * np.exp(states.columns(["crowd"])[:, 0]), present[present > 2])
    assert 50 < len(states.rates) < looks


@pytest.mark.parametrize("policy", ["dynasplit", "dynasplit:margin=power", "backlog-split", "split"])
def test_laws_are_those_of_the_kernel(policy: str) -> None:
    chosen = setting(policy)
    states = visited_states(chosen, MODEL, 2000)
    np.testing.assert_allclose(anchor_law(chosen, MODEL.sizes.mean).rates(states.features), states.rates, rtol=1e-9)


def test_a_network_of_what_changes_at_events_only_has_the_rate_that_is_held() -> None:
    network = Network(("crowd", "anchor_size"), ([[2.0, -1.0]],), ([0.5],))
    chosen = setting(network_policy(network, name="net"))
    states = visited_states(chosen, MODEL, 2000)
    np.testing.assert_allclose(anchor_law(chosen, MODEL.sizes.mean).rates(states.features), states.rates, rtol=1e-9)
    assert np.std(states.rates) > 0.05


def test_the_same_seed_gives_the_same_states() -> None:
    chosen = setting(random_policy(1, (3,)))
    one, two, other = (visited_states(chosen, MODEL, 500, seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one.features, two.features)
    np.testing.assert_array_equal(one.rates, two.rates)
    assert len(other.rates) != len(one.rates) or not np.array_equal(one.features, other.features)


def test_impatient_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_WARMUP", 2000)
    model = scenario("impatient-100")
    states = visited_states(setting(random_policy(2), model), model, 200)
    assert len(states.rates) > 100
    assert np.isfinite(states.features).all()
    assert states.columns(["servers"]).max() == math.log(model.servers)


@pytest.mark.parametrize("policy", ["srpt", "thresh-split", "ps"])
def test_policies_without_such_an_anchor(policy: str) -> None:
    with pytest.raises(ValueError, match=rf"explain: policy must be a learned policy, dynasplit.* got '{policy}'"):
        anchor_law(setting(policy), 1.0)
