"""What a training keeps to go on with: the model, the environment and all random numbers, in one file.

The file holds pickles, as the models of Stable-Baselines3 do: such a file can run any code when it is read. It is read
only by `--resume`, from the directory that the user names.
"""

from __future__ import annotations

import io
import os
import pickle
import random
from pathlib import Path
from typing import Any, TypeVar
from zipfile import ZipFile

import numpy as np
import torch
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm
from stable_baselines3.common.vec_env import VecEnv

__all__ = ["read_model", "read_progress", "write_kept"]

Model = TypeVar("Model", bound=BaseAlgorithm)

MODEL, PROGRESS, RANDOM, REPLAY = "model.zip", "progress.pickle", "random.pickle", "replay.pickle"


def write_kept(file: Path, model: BaseAlgorithm, progress: dict[str, Any]) -> None:
    """Write the file beside and rename it.

    Args:
        file: the file.
        model: as it is before a rollout.
        progress: whatever else there is to keep.
    """
    saved = io.BytesIO()
    model.save(saved)
    beside = file.with_name(file.name + ".part")
    with ZipFile(beside, "w") as archive:
        archive.writestr(MODEL, saved.getvalue())
        archive.writestr(PROGRESS, pickle.dumps(progress))
        archive.writestr(RANDOM, pickle.dumps(_random_state(model)))
        if isinstance(model, OffPolicyAlgorithm):
            archive.writestr(REPLAY, pickle.dumps(model.replay_buffer))
    os.replace(beside, file)


def read_progress(file: Path) -> dict[str, Any]:
    """Return what `write_kept` was given.

    Raises:
        ValueError: there is no such file, or it is of something else.
    """
    try:
        with ZipFile(file) as archive:
            progress = pickle.loads(archive.read(PROGRESS))
    except Exception as error:  # a pickle that is broken, or of another version, can raise any
        raise ValueError(f"--resume: {str(file)!r} is no training to go on from: {error}") from error
    return dict(progress)


def read_model(file: Path, algorithm: type[Model], env: VecEnv) -> Model:
    """Return the model, which goes on as if it had never stopped; sets the random numbers of the whole process.

    Args:
        file: that `write_kept` wrote.
        algorithm: class of the model.
        env: in the state that belongs to the model.
    """
    with ZipFile(file) as archive:
        model = algorithm.load(io.BytesIO(archive.read(MODEL)), env=env, device="cpu", force_reset=False)
        if isinstance(model, OffPolicyAlgorithm):
            model.replay_buffer = pickle.loads(archive.read(REPLAY))
        _set_random_state(model, pickle.loads(archive.read(RANDOM)))
    return model


def _random_state(model: BaseAlgorithm) -> dict[str, Any]:
    return {
        "python": random.getstate(),
        "numpy": np.random.get_state(),  # noqa: NPY002 (Stable-Baselines3 draws from it)
        "torch": torch.get_rng_state(),
        "actions": model.action_space.np_random.bit_generator.state,
    }


def _set_random_state(model: BaseAlgorithm, state: dict[str, Any]) -> None:
    random.setstate(state["python"])
    np.random.set_state(state["numpy"])  # noqa: NPY002
    torch.set_rng_state(state["torch"])
    model.action_space.np_random.bit_generator.state = state["actions"]
