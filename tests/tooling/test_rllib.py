"""RLlib's PPO and Ray Tune's search, on trainings of a second.

RLlib wants a Gymnasium of its own, so these run in a virtual environment of its own (docs/tooling.md) and are skipped
elsewhere.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

ray = pytest.importorskip("ray", reason="needs ray[rllib], in a virtual environment of its own")
# RLlib warns of its own past, and of a Gymnasium that it registers twice.
pytestmark = pytest.mark.filterwarnings("default")
pytest.importorskip("tree", reason="needs ray[rllib], in a virtual environment of its own")
torch = pytest.importorskip("torch")

from queue_env.network import network_policy, read_network  # noqa: E402
from queue_env.simulator import simulate  # noqa: E402
from train import rllib_tune  # noqa: E402
from train.inputs_env import SCALE  # noqa: E402
from train.rllib_ppo import PPOSettings, learn, make_algorithm, network_of_module  # noqa: E402

SMALL = PPOSettings(steps=512, systems=8, rollout=32, minibatches=2, epochs=1, hidden=4, big_sizes=(1.0, 10.0))


@pytest.fixture(scope="module", autouse=True)
def connected() -> Iterator[None]:
    ray.init(
        num_cpus=2,
        include_dashboard=False,
        object_store_memory=100 * 2**20,
        log_to_driver=False,
        logging_level=logging.ERROR,
    )
    yield
    ray.shutdown()


def outputs(network: Any) -> list[Any]:
    return [*network.weights, *network.biases]


def test_training_changes_the_network_which_runs_in_the_kernel() -> None:
    seen: list[tuple[int, float]] = []
    networks = [learn(replace(SMALL, steps=steps), None, lambda *at: seen.append(at)) for steps in (256, 512)]
    assert [done for done, _ in seen] == [256, 256, 512]
    assert any(not np.array_equal(*pair) for pair in zip(*map(outputs, networks), strict=True))
    result = simulate("high-load-2", network_policy(networks[1], name="ppo"), jobs=5000)
    assert result.mean_response > 1


def test_the_network_is_what_rllib_acts_by() -> None:
    algorithm = make_algorithm(SMALL)
    try:
        module = algorithm.get_module()
        assert "QueueVectorEnv" in str(algorithm.env_runner.env)
        observations = np.random.default_rng(0).uniform(0, 1.5, (50, 8)).astype(np.float32)
        with torch.no_grad():
            found = module.forward_inference({"obs": torch.from_numpy(observations)})["action_dist_inputs"]
        network = network_of_module(module)
        rates = network.rates(observations / SCALE)
        np.testing.assert_allclose(rates, 1 / (1 + np.exp(-found[:, 0].numpy())), rtol=1e-5)
    finally:
        algorithm.stop()


def test_a_training_goes_on_from_its_checkpoint(tmp_path: Path) -> None:
    checkpoint, seen = tmp_path / "checkpoint", list[int]()
    learn(replace(SMALL, steps=256), checkpoint, lambda done, _: seen.append(done))
    learn(SMALL, checkpoint, lambda done, _: seen.append(done))
    assert seen == [256, 512]
    assert [file.name for file in tmp_path.iterdir()] == ["checkpoint"]


def test_tune_searches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[int] = []
    found = rllib_tune.search(SMALL, 2, tmp_path, resume=False, done=lambda: done.append(1))
    assert len(done) == 2
    assert [trial.score for trial in found] == sorted(trial.score for trial in found)
    assert SMALL.learning_rate in [trial.settings["learning_rate"] for trial in found]
    assert found[0].settings != found[1].settings
    for trial in found:
        network, training = read_network(trial.file)
        assert training["score"] == trial.score
        assert training["learning_rate"] == trial.settings["learning_rate"]
        assert network.widths == (8, 4, 4, 1)
    again = rllib_tune.search(SMALL, 2, tmp_path, resume=True, done=lambda: done.append(1))
    assert again == found
    assert len(done) == 2


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from typer.testing import CliRunner

    from queue_env.scenarios import scenario
    from queue_env.scoring.score import Scores
    from tests.made_scores import made_score
    from train import rllib

    def score_all(policies: list[str], source: str, **_: Any) -> Scores:
        return Scores([made_score(policy, 1.0 + k, scenario(source)) for k, policy in enumerate(policies)])

    monkeypatch.setattr("queue_env.scoring.score.score_all", score_all)
    monkeypatch.setattr("train.rllib_ppo.PPOSettings", lambda **given: replace(SMALL, **given))
    arguments = ["--steps", "512", "--out", str(tmp_path / "out")]
    done = CliRunner().invoke(rllib.app, [*arguments, "--json"])
    assert done.exit_code == 0, done.output
    document = json.loads(done.stdout)
    assert [row["policy"] for row in document["rows"]] == ["srpt", f"learned:{tmp_path}/out/policy.json"]
    assert (tmp_path / "out" / "curve.csv").read_text().splitlines()[0] == "steps,mean_return"
    assert len((tmp_path / "out" / "curve.csv").read_text().splitlines()) == 3
    again = CliRunner().invoke(rllib.app, arguments)
    assert (again.exit_code, "--resume goes on with it" in again.stderr) == (2, True)
    other = CliRunner().invoke(rllib.app, [*arguments, "--resume", "--seed", "3"])
    assert (other.exit_code, "has a training with seed=0, got 3" in other.stderr) == (2, True)
    assert CliRunner().invoke(rllib.app, [*arguments, "--resume"]).exit_code == 0
