"""The same curve again: whatever the threads, after an interrupt, and from a checkpoint."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from queue_env import TailCurve, scenario, tail_curve
from queue_env.plan import make_plan
from queue_env.scoring.blocks import Blocks, Replication
from queue_env.scoring.strata import make_strata
from tests.scoring.small import small_curve

GRID = [1.0, 10.0, 100.0]
ARGUMENTS: dict[str, Any] = {"level": 2, "rel_half_width": 0.5, "most_jobs": 1e6, "seed": 9}
PILOT = 16


def curve(**arguments: Any) -> TailCurve:
    return small_curve("srpt", "high-load-2", GRID, **(ARGUMENTS | arguments))


def assert_same(one: TailCurve, other: TailCurve) -> None:
    """To the bit."""
    for name in ("t", "tail", "normalised_tail", "low", "high", "bound"):
        assert getattr(one, name).tobytes() == getattr(other, name).tobytes(), name
    for name in ("total", "jobs", "level", "replications", "seed", "reached"):
        assert getattr(one, name) == getattr(other, name), name


def interrupt_after(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the replication after so many others raise what Ctrl-C does."""
    whole, lock, made = Blocks.replicate, threading.Lock(), [0]

    def replicate(self: Blocks, *arguments: Any) -> Replication:
        with lock:
            made[0] += 1
            if made[0] > count:
                raise KeyboardInterrupt
        return whole(self, *arguments)

    monkeypatch.setattr(Blocks, "replicate", replicate)


def test_threads_do_not_matter() -> None:
    assert_same(curve(threads=1), curve(threads=2))


def test_another_seed_gives_another_curve() -> None:
    assert np.all(curve().tail != curve(seed=10).tail)


@pytest.mark.parametrize("count", [3, PILOT + 4, PILOT + 15])
def test_an_interrupted_run_goes_on_from_its_checkpoint(
    count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "curve.npz"
    with monkeypatch.context() as patch:
        interrupt_after(count, patch)
        if count < PILOT + 10:
            with pytest.raises(KeyboardInterrupt):
                curve(threads=1, checkpoint=file)
        else:
            short = curve(threads=1, checkpoint=file)
            assert short.replications == count - PILOT
            assert not short.reached
            assert np.all(np.isfinite(short.low))
    assert file.exists() == (count > PILOT)
    whole = curve(threads=1)
    assert_same(curve(threads=2, checkpoint=file), whole)
    # And once more from the file of a finished run, which has nothing left to do.
    with monkeypatch.context() as patch:
        interrupt_after(0, patch)
        assert_same(curve(threads=1, checkpoint=file), whole)


def test_a_checkpoint_of_another_call_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "curve.npz"
    curve(checkpoint=file)
    others: list[tuple[str, dict[str, Any]]] = [
        ("seed", {"seed": 10}),
        ("level", {"level": 4}),
        ("wanted", {"rel_half_width": 0.4}),
        ("most_jobs", {"most_jobs": 2e6}),
    ]
    for name, changes in others:
        with pytest.raises(ValueError, match=f"of a run with {name}="):
            curve(checkpoint=file, **changes)
    for policy, model, grid, name in (
        ("ps", "high-load-2", GRID, "policy"),
        ("srpt", "light-2", [1.0], "scenario"),
        ("srpt", "high-load-2", [1.0, 10.0], "times"),
    ):
        with pytest.raises(ValueError, match=f"of a run with {name}="):
            small_curve(policy, model, grid, **ARGUMENTS, checkpoint=file)
    with pytest.raises(ValueError, match="a folder that exists"):
        tail_curve("srpt", "high-load-2", GRID, checkpoint=tmp_path / "nowhere" / "curve.npz")
    file.write_bytes(b"no archive")
    with pytest.raises(ValueError, match="must be a file that tail_curve wrote"):
        curve(checkpoint=file)


def test_a_replication_is_a_function_of_its_seed() -> None:
    """Also where the same object is given twice."""
    model = scenario("high-load-2")
    times = np.array([0.0, 10.0])
    setting = make_plan(model, ["srpt"]).settings[0]
    made = Blocks(model, setting, make_strata(model.sizes, 4.0), times, 2, 1000, 2000, 16, np.eye(2))
    seed, counts = np.random.SeedSequence(1), np.minimum(2.0, 1000 / made.expected_jobs())
    for one, other in zip(made.replicate(seed, counts), made.replicate(seed, counts), strict=True):
        np.testing.assert_array_equal(one, other)
