"""Trainings by reinforcement learning of a few seconds, for tests.

As a program, ``python small_rl.py NAME STEPS ARGUMENT...``, such a training is killed after so many steps.
"""

from __future__ import annotations

import importlib
import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from queue_env.network import NAMES
from tests.train.small import make_small
from train import judge, run, starts

COMMON: dict[str, Any] = {
    "scenarios": ["high-load-2"],
    "seed": 1,
    "systems": 8,
    "steps": 1536,
    "features": list(NAMES[:8]),
    "hidden": [4],
    "critic": [8],
    "sizes": [0.5, 50],
    "first_high": 5,
    "grown": 0.5,
    "states": 8,
    "most_steps": 500,
    "beta": 0.001,
    "decision_interval": None,
    "every": 512,
    "replications": 2,
    "learning_rate": [0.01, 0.001],
}
OFF_POLICY = {"buffer_size": 1000, "learning_starts": 300, "batch_size": 32, "train_freq": 8, "gradient_steps": 2}
ALGORITHMS: dict[str, dict[str, Any]] = {
    "ppo": {"n_steps": 32, "batch_size": 64, "n_epochs": 2},
    "sac": OFF_POLICY,
    "dqn": OFF_POLICY | {"target_update_interval": 64},
}


def write_settings(directory: Path, name: str, **changes: Any) -> Path:
    path = directory / f"{name}.yaml"
    path.write_text(yaml.safe_dump(COMMON | {"algorithm": ALGORITHMS[name]} | changes), encoding="utf-8")
    return path


def make_small_rl(patch: pytest.MonkeyPatch) -> None:
    """Make evaluations and plain runs short."""
    make_small(patch)
    patch.setattr(judge, "_AGENT_SNAPSHOTS", 16)
    patch.setattr(judge, "_AGENT_SHARE", 1.0)
    patch.setattr(starts, "_WARMUP", 500)


def die_after(patch: pytest.MonkeyPatch, steps: int, die: Any) -> None:
    """Let a training die in the first rollout that begins after so many steps, when it has done what it does first."""
    before = run.Run.before_rollout

    def before_rollout(self: run.Run, model: Any, bar: Any) -> None:
        before(self, model, bar)
        if model.num_timesteps >= steps:
            die()

    patch.setattr(run.Run, "before_rollout", before_rollout)


if __name__ == "__main__":
    with pytest.MonkeyPatch.context() as patches:
        make_small_rl(patches)
        die_after(patches, int(sys.argv[2]), lambda: os.kill(os.getpid(), signal.SIGKILL))
        importlib.import_module(f"train.{sys.argv[1]}").app(sys.argv[3:])
