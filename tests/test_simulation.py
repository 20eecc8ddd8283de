"""`Simulation`: a run that is stopped, saved and continued."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from queue_env import Result, Simulation, index_policy, simulate
from queue_env.user_policies import UserPolicy

POLICIES = ("srpt", "dynasplit", "ps", "las")


def same(one: Result, other: Result) -> None:
    for name in ("stats", "response_counts", "slowdown_counts", "size_counts", "window", "number_area", "busy_area"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("scenario", ["high-load-2", "impatient-100"])
def test_goes_on_from_a_state_bit_for_bit(scenario: str, policy: str) -> None:
    if scenario == "impatient-100" and policy == "dynasplit":
        policy = "dynasplit:delta=0.5"
    run = Simulation(scenario, policy, seed=3)
    run.run(50_000)
    saved = run.state()
    run.run(20_000)
    again = Simulation(scenario, policy, seed=3)
    again.restore(saved)
    again.run(20_000)
    same(again.result(), run.result())
    assert (again.arrived, again.present, again.now) == (run.arrived, run.present, run.now)
    assert again.arrived == 70_000


def test_goes_on_from_a_file(tmp_path: Path) -> None:
    run = Simulation("light-2", "fcfs", seed=1, warmup=100)
    run.run(5_000)
    run.save(tmp_path / "run.npz")
    assert [path.name for path in tmp_path.iterdir()] == ["run.npz"]
    again = Simulation("light-2", "fcfs", seed=1, warmup=100)
    again.load(tmp_path / "run.npz")
    for each in (run, again):
        each.run(5_000)
    same(again.result(), run.result())


def test_is_the_first_stream_of_simulate() -> None:
    run = Simulation("high-load-2", "srpt", seed=7)
    run.run(20_000)
    result = simulate("high-load-2", "srpt", jobs=20_000, seed=7, streams=1, warmup=0)
    # simulate follows the last jobs to their departure, with arrivals going on.
    assert run.result().served <= result.served == 20_000
    assert np.all(run.result().response_counts.sum(axis=0) <= result.response_counts.sum(axis=0))
    assert run.result().present == 20_000 - run.result().served
    assert run.result().little_law_gap < 1e-12


@pytest.mark.parametrize(
    ("scenario", "policy", "message"), [("light-2", "srpt", "state"), ("high-load-2", "fcfs", "state")]
)
def test_the_state_of_another_run_is_refused(scenario: str, policy: str, message: str) -> None:
    saved = Simulation("high-load-2", "srpt").state()
    with pytest.raises(ValueError, match=message):
        Simulation(scenario, policy).restore(saved)


def test_the_state_of_another_seed_or_rule_is_refused() -> None:
    def sign(factor: float) -> UserPolicy:
        def rule(size: float, remaining: float, number: float, parameters: object) -> float:
            return factor * size

        return index_policy(rule, name="mine")

    saved = Simulation("light-2", sign(1.0), seed=1).state()
    Simulation("light-2", sign(1.0), seed=1).restore(saved)
    for policy, seed in ((sign(-1.0), 1), (sign(1.0), 2)):
        with pytest.raises(ValueError, match="state"):
            Simulation("light-2", policy, seed=seed).restore(saved)


def test_a_state_with_parts_missing_is_refused() -> None:
    run = Simulation("light-2")
    saved = run.state()
    del saved["jobs"]
    with pytest.raises(ValueError, match="state must be one with jobs"):
        run.restore(saved)


@pytest.mark.parametrize("jobs", [0, -1, True, "many"])
def test_jobs_that_are_not_allowed(jobs: int) -> None:
    with pytest.raises(ValueError, match="jobs must be an integer of at least 1"):
        Simulation("light-2").run(jobs)
