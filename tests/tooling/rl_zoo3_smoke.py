"""The command of RL Zoo trains, evaluates and saves on the environment: PPO, SAC, DQN and recurrent PPO.

It is no test of the test suite, since RL Zoo brings much that the tests do not need (a quarter of a gigabyte). From
the root of a checkout, in a virtual environment of its own:

    python -m venv zoo-venv
    zoo-venv/bin/pip install torch==2.13.0
    zoo-venv/bin/pip install --editable ".[sb3]" rl-zoo3
    zoo-venv/bin/python -m tests.tooling.rl_zoo3_smoke

What it runs is, with a file of hyperparameters that has an entry for the id,

    python -m rl_zoo3.train --algo ppo --env queue_env/MGn-v0 --gym-packages queue_env --conf-file FILE
        --env-kwargs 'action:"anchor"' symmetric_actions:True

It prints a table of what was seen, and ends with an error if something is wrong.
"""

from __future__ import annotations

import csv
import os
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import sb3_contrib
import stable_baselines3

from tests.tooling.watch import ID

ROOT = Path(__file__).parent.parent.parent
JOBS, STEPS = 20, 1024
ANCHOR = {"action": "anchor", "observation": "compact", "symmetric_actions": True, "jobs": JOBS}
ON_POLICY = "n_steps: 64\n  batch_size: 64\n  n_epochs: 2"
OFF_POLICY = "learning_starts: 256\n  batch_size: 32\n  policy_kwargs: 'dict(net_arch=[32, 32])'"
CASES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "ppo": ("MlpPolicy", ON_POLICY, ANCHOR),
    "sac": ("MlpPolicy", OFF_POLICY, ANCHOR),
    "dqn": ("MlpPolicy", OFF_POLICY, {"action": "rule", "rules": ["srpt", "fcfs"], "jobs": JOBS}),
    "ppo_lstm": ("MlpLstmPolicy", ON_POLICY, {"size_knowledge": "unknown", "symmetric_actions": True, "jobs": JOBS}),
}


def as_option(name: str, value: Any) -> str:
    """A keyword argument as RL Zoo reads it: a name and a Python expression."""
    return f"{name}:{value!r}".replace("'", '"')


def check(algorithm: str, policy: str, settings: str, arguments: dict[str, Any], directory: Path) -> None:
    """Run the command, check what it has left in its folder, and print a line."""
    settings_file = directory / f"{algorithm}.yml"
    settings_file.write_text(
        f"{ID}:\n  n_envs: 2\n  n_timesteps: {STEPS}\n  policy: {policy}\n  {settings}\n", encoding="utf-8"
    )
    command = [sys.executable, "-m", "rl_zoo3.train", "--algo", algorithm, "--env", ID, "--gym-packages", "queue_env"]
    command += ["--conf-file", str(settings_file), "--log-folder", str(directory / "logs"), "--seed", "1"]
    command += ["--eval-freq", "512", "--eval-episodes", "2", "--n-eval-envs", "1", "--verbose", "0", "--device", "cpu"]
    command += ["--env-kwargs", *(as_option(*item) for item in arguments.items())]
    environment = os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, cwd=directory, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, (
        f"{command} ended with {done.returncode}:\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
    )

    # The slash of the id becomes a dash.
    folder = directory / "logs" / algorithm / f"{ID.replace('/', '-')}_1"
    lengths: list[int] = []
    returns: list[float] = []
    for file in sorted(folder.glob("*.monitor.csv")):
        lines = file.read_text(encoding="utf-8").splitlines()[1:]
        lengths += [int(row["l"]) for row in csv.DictReader(lines)]
        returns += [float(row["r"]) for row in csv.DictReader(lines)]
    assert len(lengths) > 10, f"{len(lengths)} episodes"
    # Each job arrives and leaves, and the last arrivals may be still to come.
    assert all(JOBS <= length <= 3 * JOBS for length in lengths), lengths
    assert STEPS - 2 * 3 * JOBS <= sum(lengths) <= STEPS, sum(lengths)
    assert np.isfinite(returns).all()
    assert min(returns) < max(returns) <= 0

    evaluations = np.load(folder / "evaluations.npz")
    assert evaluations["results"].shape == (2, 2), evaluations["results"].shape
    assert np.isfinite(evaluations["results"]).all()
    kind = {"ppo_lstm": sb3_contrib.RecurrentPPO}.get(algorithm) or getattr(stable_baselines3, algorithm.upper())
    model = kind.load(folder / f"{ID.replace('/', '-')}.zip", device="cpu")
    assert model.num_timesteps >= STEPS
    assert all(np.isfinite(p.detach().numpy()).all() for p in model.policy.parameters())
    env = gym.make(ID, **arguments)
    action, _ = model.predict(env.reset(seed=0)[0], deterministic=True)
    assert env.action_space.contains(action) or int(action) in (0, 1)
    print(f"{algorithm:10} {model.num_timesteps:6} {len(lengths):9} {np.mean(returns):12.4g}", flush=True)


def main() -> None:
    """Check all algorithms."""
    print(
        f"rl_zoo3 {version('rl_zoo3')}, stable-baselines3 {version('stable_baselines3')}, gymnasium {gym.__version__}"
    )
    print(f"{'algorithm':10} {'steps':>6} {'episodes':>9} {'mean return':>12}")
    with tempfile.TemporaryDirectory() as directory:
        for algorithm, (policy, settings, arguments) in CASES.items():
            check(algorithm, policy, settings, arguments, Path(directory))


if __name__ == "__main__":
    main()
