"""Policies by what is written on a command line: texts, objects of modules, saved models."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from made_scores import made_score
from test_cli import run_json

from queue_env import score_all
from queue_env.scenarios import scenario
from queue_env.scoring.agent_blocks import AgentPolicy
from queue_env.scoring.named_policies import check_policies, load_policy, stable_policies

HIGH = scenario("high-load-2")
MODULE = """
import numba
import queue_env

@numba.njit
def product(size, remaining, number, parameters):
    return size * remaining

class Agent:
    def predict(self, observation, state=None, episode_start=None, deterministic=True):
        raise AssertionError

rs = queue_env.index_policy(product, name="rs")
plain, special, wrong = Agent(), Agent(), Agent()
special.env_arguments = {"action": "rule", "observation": "flat", "rules": ["srpt", "ps"]}
wrong.env_arguments = {"colour": "red"}
number = 3
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of a module in the current directory."""
    (tmp_path / "mine_to_score.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "mine_to_score", raising=False)
    return "mine_to_score"


def test_reference_policies_stay_texts() -> None:
    assert load_policy("thresh-split:d=2", HIGH) == "thresh-split:d=2"
    assert check_policies(["srpt", "thresh-split:d=2"], HIGH, "score") == ["srpt", "thresh-split:d=2"]
    with pytest.raises(ValueError, match="all different"):
        check_policies(["srpt", "srpt:"], HIGH, "score")


def test_policy_of_a_module_in_the_current_directory(module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def score(policy: Any, source: Any, **_: Any) -> Any:
        asked.append(policy)
        return made_score(getattr(policy, "name", policy), 1.0, source)

    monkeypatch.setattr("queue_env.scoring.score.score", score)
    run_json("score", "high-load-2", "--policy", "srpt", "--policy", f"{module}:rs")
    assert asked == ["srpt", sys.modules[module].rs]
    assert check_policies(asked, HIGH, "score") == ["srpt", "rs"]


def test_agents_of_a_module(module: str) -> None:
    plain, special = (load_policy(f"{module}:{name}", HIGH) for name in ("plain", "special"))
    assert isinstance(plain, AgentPolicy)
    assert plain.agent is sys.modules[module].plain
    assert plain.arguments == {"action": "anchor", "observation": "compact", "symmetric_actions": False}
    assert special.arguments == {"action": "rule", "observation": "flat", "rules": ["srpt", "ps"]}
    assert check_policies([plain, special], HIGH, "score") == [f"{module}:plain", f"{module}:special"]
    with pytest.raises(ValueError, match=f"env_arguments of {module}:wrong: .*colour"):
        check_policies([load_policy(f"{module}:wrong", HIGH)], HIGH, "score")


@pytest.mark.parametrize(
    ("name", "message"),
    [("number", "is of type int; allowed: "), ("Agent", "is a class; allowed: "), ("nothing", "has no 'nothing'")],
)
def test_objects_that_are_no_policies(module: str, name: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        load_policy(f"{module}:{name}", HIGH)


def test_module_that_needs_another_says_which(module: str, tmp_path: Path) -> None:
    (tmp_path / "needs_another.py").write_text("import not_there_at_all\n")
    with pytest.raises(ModuleNotFoundError, match="not_there_at_all"):
        load_policy("needs_another:agent", HIGH)


SPACES = [
    {"action": "anchor", "observation": "compact", "symmetric_actions": True},
    {"action": "anchor", "observation": "flat", "symmetric_actions": False},
    {"action": "allocation", "observation": "flat", "symmetric_actions": True},
]


@pytest.mark.parametrize("arguments", SPACES, ids=lambda arguments: "-".join(map(str, arguments.values())))
def test_models_that_were_saved(arguments: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sb3 = pytest.importorskip("stable_baselines3", reason="Stable-Baselines3 is not installed")
    from queue_env import QueueEnv

    path = tmp_path / "model.zip"
    sb3.A2C("MlpPolicy", QueueEnv("high-load-2", **arguments)).save(path)
    policy = load_policy(f"a2c:{path}", HIGH)
    assert isinstance(policy, AgentPolicy)
    assert (policy.label, policy.arguments) == (f"a2c:{path}", arguments)
    assert capsys.readouterr().err.startswith(f"note: {path} holds pickles, which can run any code")
    with pytest.raises(ValueError, match=r"which no environment of high-load-10 \(10 servers\) does by its defaults"):
        load_policy(f"a2c:{path}", scenario("high-load-10"))


@pytest.mark.parametrize("knowledge", ["known", "unknown"])
def test_a_saved_model_whose_action_is_threshold(knowledge: str, tmp_path: Path) -> None:
    sb3 = pytest.importorskip("stable_baselines3", reason="Stable-Baselines3 is not installed")
    from queue_env import QueueEnv

    arguments = {"action": "threshold", "size_knowledge": knowledge, "symmetric_actions": True}
    path = tmp_path / "model.zip"
    sb3.A2C("MlpPolicy", QueueEnv("impatient-100", **arguments)).save(path)
    policy = load_policy(f"a2c:{path}", scenario("impatient-100"))
    assert isinstance(policy, AgentPolicy)
    assert policy.arguments == arguments
    (row,) = score_all([policy], "impatient-100", plain_jobs=2000)
    assert 0 < row.plain.abandoned < 2000


def test_rules_and_other_algorithms(tmp_path: Path) -> None:
    sb3 = pytest.importorskip("stable_baselines3", reason="Stable-Baselines3 is not installed")
    from queue_env import QueueEnv

    path = tmp_path / "model.zip"
    sb3.DQN("MlpPolicy", QueueEnv("high-load-2", action="rule"), buffer_size=10).save(path)
    assert load_policy(f"DQN:{path}", HIGH).arguments["action"] == "rule"
    with pytest.raises(ValueError, match="does not load as PPO"):
        load_policy(str(path), HIGH)
    with pytest.raises(ValueError, match="algorithm='best', allowed: A2C, "):
        load_policy(f"best:{path}", HIGH)


def test_policies_without_a_steady_state_are_left_out() -> None:
    assert "ps" not in stable_policies(scenario("impatient-100"))
    assert "ps" in stable_policies(HIGH)
