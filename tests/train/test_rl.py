"""``python -m train.ppo``, ``train.sac``, ``train.dqn``: whole trainings, killed and resumed; and what they refuse."""

from __future__ import annotations

import csv
import importlib
import io
import json
import os
import pickle
import re
import signal
import subprocess
import sys
from datetime import date
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import numpy as np
import pytest
import torch
import yaml
from stable_baselines3 import DQN, PPO, SAC
from typer.testing import CliRunner, Result

import queue_env
from queue_env.network import read_network
from queue_env.scenarios import scenario
from queue_env.scoring.named_policies import load_policy
from tests.train import small_rl
from train import judge
from train.run import CHECKPOINT, CURVE, RESULT
from train.run_settings import SETTINGS, read_settings

ALGORITHMS = {"ppo": PPO, "sac": SAC, "dqn": DQN}
ROOT = Path(__file__).parents[2]


class DiedError(Exception):
    pass


def die() -> None:
    raise DiedError


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    small_rl.make_small_rl(monkeypatch)


def run(name: str, *arguments: object) -> Result:
    app = importlib.import_module(f"train.{name}").app
    return CliRunner().invoke(app, [str(word) for word in arguments], env={"COLUMNS": "200", "NO_COLOR": "1"})


def curve(directory: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO((directory / CURVE).read_text())))


def weights(directory: Path) -> dict[str, Any]:
    """All parameters and states of optimizers of a training."""
    with ZipFile(directory / CHECKPOINT) as archive, ZipFile(io.BytesIO(archive.read("model.zip"))) as model:
        names = [name for name in model.namelist() if name.endswith(".pth")]
        return {name: torch.load(io.BytesIO(model.read(name)), weights_only=True) for name in names}


def assert_same(one: Any, other: Any) -> None:
    if isinstance(one, dict):
        assert one.keys() == other.keys()
        for key in one:
            assert_same(one[key], other[key])
    elif isinstance(one, list):
        for left, right in zip(one, other, strict=True):
            assert_same(left, right)
    elif isinstance(one, torch.Tensor):
        assert torch.equal(one, other)
    else:
        assert one == other


@pytest.mark.parametrize("name", ALGORITHMS)
def test_a_training_that_died_goes_on_as_if_it_had_not(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = small_rl.write_settings(tmp_path, name)
    done = run(name, "--settings", settings, "--out", tmp_path / "whole", "--json")
    assert done.exit_code == 0, done.output
    rows = curve(tmp_path / "whole")
    assert [int(row["steps"]) for row in rows] == [0, 512, 1024, 1536]
    assert len({row["learned"] for row in rows}) > 2
    with monkeypatch.context() as patch:
        small_rl.die_after(patch, 800, die)
        died = run(name, "--settings", settings, "--out", tmp_path / "again")
        assert isinstance(died.exception, DiedError)
    resumed = run(name, "--settings", settings, "--out", tmp_path / "again", "--resume", "--threads", 1)
    assert resumed.exit_code == 0, resumed.output
    assert (tmp_path / "again" / CURVE).read_bytes() == (tmp_path / "whole" / CURVE).read_bytes()
    assert_same(weights(tmp_path / "again"), weights(tmp_path / "whole"))
    one, other = (json.loads((tmp_path / place / RESULT).read_text()) for place in ("whole", "again"))
    assert one["fresh"] == other["fresh"]


def test_killed_and_resumed(tmp_path: Path) -> None:
    settings, out = small_rl.write_settings(tmp_path, "ppo"), tmp_path / "killed"
    command = [sys.executable, str(ROOT / "tests" / "train" / "small_rl.py"), "ppo", "1100"]
    arguments = ["--settings", str(settings), "--out", str(out)]
    done = subprocess.run([*command, *arguments], env={**os.environ, "PYTHONPATH": str(ROOT)}, check=False)
    assert done.returncode == -signal.SIGKILL
    assert [int(row["steps"]) for row in curve(out)] == [0, 512, 1024]
    assert not (out / RESULT).exists()
    assert run("ppo", *arguments, "--resume").exit_code == 0
    assert run("ppo", "--settings", settings, "--out", tmp_path / "whole").exit_code == 0
    assert (out / CURVE).read_bytes() == (tmp_path / "whole" / CURVE).read_bytes()
    assert_same(weights(out), weights(tmp_path / "whole"))


def test_an_interrupt_keeps_all_rollouts_that_are_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings, out = small_rl.write_settings(tmp_path, "ppo"), tmp_path / "interrupted"
    with monkeypatch.context() as patch:
        small_rl.die_after(patch, 700, lambda: os.kill(os.getpid(), signal.SIGINT))
        stopped = run("ppo", "--settings", settings, "--out", out)
    assert stopped.exit_code == 130
    assert "--resume goes on" in stopped.stderr
    # Noted before the rollout that begins at 768 steps, it takes effect after that.
    with ZipFile(out / CHECKPOINT) as archive, ZipFile(io.BytesIO(archive.read("model.zip"))) as model:
        assert json.loads(model.read("data"))["num_timesteps"] == 1024
    assert run("ppo", "--settings", settings, "--out", out, "--resume").exit_code == 0
    assert run("ppo", "--settings", settings, "--out", tmp_path / "whole").exit_code == 0
    assert (out / CURVE).read_bytes() == (tmp_path / "whole" / CURVE).read_bytes()


def test_several_scenarios_and_the_policy_that_comes_of_it(tmp_path: Path) -> None:
    settings, out = small_rl.write_settings(tmp_path, "ppo", steps=512), tmp_path / "two"
    names = ["high-load-2", "high-load-4"]
    done = run(
        "ppo", "--scenario", ",".join(names), "--settings", settings, "--out", out, "--tensorboard", tmp_path / "tb"
    )
    assert done.exit_code == 0, done.output
    network, training = read_network(out / "policy.json")
    assert network.features[-2:] == ("servers", "load")
    assert training["scenarios"] == names
    assert set(training["fresh"]) == set(names)
    assert {path.name for path in (tmp_path / "tb").iterdir()} == {
        "learned",
        "srpt",
        "dynasplit",
        "backlog-split",
        "training",
    }
    for name in names:
        result = queue_env.simulate(name, f"learned:{out / 'policy.json'}", jobs=20_000)
        assert np.isfinite(result.mean_response)


def test_a_model_of_dqn_is_a_policy_by_its_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings, out = small_rl.write_settings(tmp_path, "dqn", steps=8, replications=1), tmp_path / "out"
    assert run("dqn", "--settings", settings, "--out", out).exit_code == 0
    policy = load_policy(f"dqn:{out / 'policy.zip'}", scenario("high-load-2"))
    assert policy.arguments == {"action": "rule", "observation": "compact", "symmetric_actions": False}
    assert "pickles" in capsys.readouterr().err


def test_minutes_end_it_at_an_evaluation(tmp_path: Path) -> None:
    settings, out = small_rl.write_settings(tmp_path, "ppo"), tmp_path / "short"
    assert run("ppo", "--settings", settings, "--out", out, "--minutes", 1e-9).exit_code == 0
    assert [int(row["steps"]) for row in curve(out)] == [0]
    assert (out / RESULT).exists()


@pytest.mark.parametrize("name", ALGORITHMS)
def test_settings_that_come_with_the_package_are_allowed(name: str) -> None:
    files = sorted(SETTINGS.glob(f"{name}*.yaml"))
    assert files
    for file in files:
        written = yaml.safe_load(file.read_text())
        assert isinstance(written["date"], date)
        assert re.search(r"\d", written["result"])
        settings = read_settings(f"train.{name}", file, {}, ALGORITHMS[name])
        assert file.stem in (name, f"{name}-{settings.scenarios[0]}")


REFUSED = [
    (["--steps", "x"], "--steps must be a whole number"),
    (["--minutes", "0"], "--minutes must be a finite number > 0"),
    (["--threads", "0"], "--threads must be at least 1"),
    (["--scenario", "high-load-3"], "high-load-3"),
    (["--scenario", "impatient-100"], "train.ppo"),
    (["--scenario", "light-2"], "of a heavy tail"),
    (["--scenario", "high-load-2,high-load-2"], "each once"),
    (["--seed", "-1"], "seed must be an integer from 0 to"),
    (["--settings", "no.yaml"], "cannot be read"),
    (["--resume"], "no training to go on from"),
]


@pytest.mark.parametrize(("arguments", "message"), REFUSED, ids=[" ".join(words) for words, _ in REFUSED])
def test_refusals(arguments: list[str], message: str, tmp_path: Path) -> None:
    done = run("ppo", "--out", tmp_path / "out", *arguments)
    assert done.exit_code == 2
    assert message in done.stderr
    assert done.stderr.startswith("error: ")
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "out").exists()


WRONG = [
    ({"systems": 0}, "systems must be an integer of at least 1"),
    ({"sizes": [2, 1]}, "sizes must be two numbers"),
    ({"sizes": [0.1, 10]}, "sizes must be"),
    ({"grown": 2}, "grown must be 0 to 1"),
    ({"features": ["size"]}, "features must be names among"),
    ({"hidden": [99]}, "hidden must be an integer from 1 to 32"),
    ({"beta": 0}, "beta must be a finite number > 0"),
    ({"algorithm": {"gama": 1}}, "algorithm must be a mapping of arguments among"),
    ({"algorithm": {"batch_size": -1}}, "algorithm has a setting that is not allowed: `batch_size` must be"),
    ({"algorithm": {"n_steps": "many"}}, "algorithm has a setting that is not allowed"),
    ({"seed": 2**32}, "seed must be an integer from 0 to 4294967295"),
    ({"extra": 1}, "setting must be among"),
]


@pytest.mark.parametrize(("changes", "message"), WRONG, ids=[str(changes) for changes, _ in WRONG])
def test_wrong_settings(changes: dict[str, Any], message: str, tmp_path: Path) -> None:
    settings = small_rl.write_settings(tmp_path, "ppo", **changes)
    done = run("ppo", "--settings", settings, "--out", tmp_path / "out")
    assert done.exit_code == 2
    assert message in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_training_is_not_written_over_nor_resumed_by_other_settings(tmp_path: Path) -> None:
    settings, out = small_rl.write_settings(tmp_path, "ppo", steps=256), tmp_path / "out"
    assert run("ppo", "--settings", settings, "--out", out).exit_code == 0
    again = run("ppo", "--settings", settings, "--out", out)
    assert again.exit_code == 2
    assert "--resume be given" in again.stderr
    other = run("ppo", "--settings", settings, "--out", out, "--resume", "--seed", 2)
    assert other.exit_code == 2
    assert "seed must be 1" in other.stderr


def test_what_is_no_settings_file_or_no_checkpoint(tmp_path: Path) -> None:
    settings, out = small_rl.write_settings(tmp_path, "ppo", algorithm={}), tmp_path / "out"
    out.mkdir()
    (out / CHECKPOINT).write_bytes(b"text")
    assert "is no training to go on from" in run("ppo", "--settings", settings, "--out", out, "--resume").stderr
    with ZipFile(out / CHECKPOINT, "w") as archive:
        archive.writestr("progress.pickle", b"cno_module\nnothing\n.")
    assert "is no training to go on from" in run("ppo", "--settings", settings, "--out", out, "--resume").stderr
    with ZipFile(out / CHECKPOINT, "w") as archive:
        archive.writestr("progress.pickle", pickle.dumps({"name": "sac"}))
    refused = run("ppo", "--settings", settings, "--out", out, "--resume")
    assert refused.exit_code == 2
    assert "of a training by the same command, got 'train.sac'" in refused.stderr
    settings.write_bytes(b"\xff\xfe")
    assert "is not YAML" in run("ppo", "--settings", settings, "--out", out).stderr


def test_dqn_takes_one_scenario(tmp_path: Path) -> None:
    settings = small_rl.write_settings(tmp_path, "dqn", scenarios=["high-load-2", "high-load-4"])
    refused = run("dqn", "--settings", settings, "--out", tmp_path / "out")
    assert refused.exit_code == 2
    assert "got ['high-load-2', 'high-load-4']" in refused.stderr


def test_an_interrupt_of_the_last_scores_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    settings, out = small_rl.write_settings(tmp_path, "ppo", steps=256), tmp_path / "out"
    with monkeypatch.context() as patch:
        patch.setattr(judge.Judge, "fresh", interrupted)
        stopped = run("ppo", "--settings", settings, "--out", out)
    assert stopped.exit_code == 130
    assert f"--resume goes on from {out}" in stopped.stderr
    assert run("ppo", "--settings", settings, "--out", out, "--resume").exit_code == 0
    assert len(curve(out)) == 2


@pytest.mark.parametrize("name", ALGORITHMS)
def test_help_loads_no_heavy_package(name: str) -> None:
    heavy = {"torch", "numba", "scipy", "gymnasium", "stable_baselines3"}
    code = f"import sys, train.{name}; print({heavy!r} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.strip() == "set()"
    helped = run(name, "--help")
    assert f"Example: python -m train.{name}" in helped.output
