"""A memory in other slots goes on, to the bit, as the one it comes from, and grows again as it would."""

from __future__ import annotations

import numpy as np
import pytest

from queue_env import allocation_policy, law
from queue_env.kernel.compact import compact
from queue_env.rules import parse_policy
from queue_env.settings import Setting, set_up
from queue_env.system import System
from queue_env.workload import Chunk
from tests.scoring.rules import fair_shares
from tests.strategies import CLOCKS

JOBS, PARTS = 600, 12
SERVERS, SPARE = 3, 0.3
POLICIES = (
    "fcfs", "lcfs", "plcfs", "srpt", "psjf", "sjf", "ps", "las", "split", "super-server", "thresh-split:d=1.5",
    "dynasplit", "backlog-split:b=1,kappa=0.3", "loss-priority:tau=1.2",
)  # fmt: skip


def crowds(rng: np.random.Generator) -> Chunk:
    """Jobs that come in crowds of up to some hundred, heavy-tailed, so that many are present, and few again."""
    arrivals = np.sort(np.repeat(100.0 * np.arange(PARTS // 2), JOBS * 2 // PARTS) + 40.0 * rng.random(JOBS))
    return Chunk(arrivals, 0.4 * rng.random(JOBS) ** (-1 / 1.5), rng.exponential(30.0, JOBS))


def run(setting: Setting, clock: str | None, jobs: Chunk, slots: tuple[int, ...] = ()) -> tuple[System, int]:
    """Feed jobs in parts, and put the memory into so many slots, or as many as there are jobs, between them."""
    system, moved = System(setting, clock=clock, counted=(0, JOBS), recorded=JOBS, slots=16), 0
    for i, part in enumerate(np.split(np.arange(JOBS), PARTS)):
        patience = None if clock is None or jobs.patience is None else jobs.patience[part]
        system.feed(Chunk(jobs.arrival_times[part], jobs.sizes[part], patience))
        if slots:
            present = int(system.memory.system["number"][0])
            before = system.memory
            kept = {name: array.copy() for name, array in before._asdict().items()}
            system.memory = compact(before, max(slots[i % len(slots)], present))
            for name, array in kept.items():
                assert array.tobytes() == getattr(before, name).tobytes(), name
            moved += len(before.jobs) != len(system.memory.jobs)
    system.drain()
    return system, moved


@pytest.mark.parametrize("clock", [None, *CLOCKS])
@pytest.mark.parametrize("policy", [*POLICIES, "own"])
def test_other_slots_change_nothing(policy: str, clock: str | None) -> None:
    given = parse_policy(allocation_policy(fair_shares) if policy == "own" else policy)
    setting = set_up(given, SERVERS, SPARE, law({"law": "pareto", "alpha": 1.5, "mean": 1.0}))
    jobs = crowds(np.random.default_rng(POLICIES.index(policy) if policy != "own" else 99))
    plain, _ = run(setting, clock, jobs)
    other, moved = run(setting, clock, jobs, (1, 64, 7))
    assert moved > PARTS // 2
    for name in ("records", "stats", "response_counts", "slowdown_counts"):
        assert getattr(plain.memory, name).tobytes() == getattr(other.memory, name).tobytes(), name
    assert plain.now == other.now
