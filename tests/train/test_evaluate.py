"""The evaluation of a policy beside reference policies: its numbers from known scores, and what it runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from made_scores import made_score
from typer.testing import CliRunner, Result

from queue_env.network import write_network
from queue_env.scenarios import Scenario
from tests.networks import random_network
from tests.train.small import make_small
from train.evaluate import REFERENCES, app
from train.objective import CoupledBlocks

VALUES = {"srpt": 1.0, "dynasplit": 1.25}


@pytest.fixture
def file(tmp_path: Path) -> str:
    write_network(tmp_path / "net.json", random_network(1), {})
    return f"learned:{tmp_path / 'net.json'}"


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str, dict[str, Any]]]:
    """Scores of known values in place of those that take minutes; what was asked for."""
    calls: list[tuple[str, str, dict[str, Any]]] = []

    def score(policy: Any, model: Scenario, **options: Any) -> Any:
        calls.append((model.name, policy, options))
        return made_score(policy, VALUES.get(policy, 0.8 if policy.startswith("learned:") else 2.0), model)

    monkeypatch.setattr("queue_env.scoring.score.score", score)
    return calls


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, [*arguments], env={"COLUMNS": "200", "NO_COLOR": "1"})


def test_replications_of_the_search_compare_on_the_same_jobs(file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    make_small(monkeypatch)
    arguments = ("high-load-2", "--policy", "backlog-split", "--policy", "backlog-split:b=1.05", "--replications", "6")
    done = run(file, *arguments, "--json")
    assert done.exit_code == 0, done.output
    rows = json.loads(done.stdout)["scenarios"]["high-load-2"]
    assert list(rows) == [file, "backlog-split", "backlog-split:b=1.05"]
    assert rows[file]["difference"] == [0, 0, 0]
    for row in rows.values():
        assert row["difference"][0] == pytest.approx(row["score"][0] - rows[file]["score"][0])
    near = run("backlog-split", *arguments, "--json")
    near_rows = json.loads(near.stdout)["scenarios"]["high-load-2"]["backlog-split:b=1.05"]
    assert near_rows["score"] == rows["backlog-split:b=1.05"]["score"]
    assert np.ptp(near_rows["difference"][1:]) < np.ptp(near_rows["score"][1:]) / 3
    assert "difference to the first" in run(file, *arguments).output
    assert run(file, *arguments, "--policy", "nobody").exit_code == 2
    assert run(file, *arguments[:-1], "1").exit_code == 2


def test_a_policy_that_is_not_stable_gets_no_score(file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise ValueError("a block has not ended")

    monkeypatch.setattr(CoupledBlocks, "replicate", refuse)
    done = run(file, "high-load-2", "--policy", "srpt", "--replications", "2")
    assert done.exit_code == 2
    assert f"policy {file}: blocks do not end" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_scenario_can_be_changed(file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    loads: list[float] = []

    def score(policy: Any, model: Scenario, **options: Any) -> Any:
        loads.append(model.load)
        return made_score(policy, 1.0, model)

    monkeypatch.setattr("queue_env.scoring.score.score", score)
    done = run(file, "high-load-2", "--policy", "srpt", "--set", "load=0.7")
    assert done.exit_code == 0, done.output
    assert loads == [0.7, 0.7]
    assert run(file, "high-load-2", "--set", "load=1.2").exit_code != 0


def test_shares_are_those_of_the_other_scores(file: str, asked: list[Any]) -> None:
    done = run(file, "high-load-2", "high-load-4", "--json")
    assert done.exit_code == 0, done.output
    document = json.loads(done.stdout)
    assert list(document["scenarios"]) == ["high-load-2", "high-load-4"]
    for rows in document["scenarios"].values():
        assert [row["policy"] for row in rows][:3] == [file, "srpt", "dynasplit"]
        assert {row["policy"] for row in rows} == {file, *REFERENCES}
        assert rows[0]["score"][0] == pytest.approx(0.8)
        assert "less" not in rows[0]
        assert rows[1]["less"][0] == pytest.approx(0.2)
        assert rows[2]["less"][0] == pytest.approx(0.45 / 1.25)
        for row in rows[1:]:
            assert row["less"][1] <= row["less"][0] <= row["less"][2]
            assert row["better"] >= 0.5


def test_all_meet_the_same_streams_with_one_set_of_options(file: str, asked: list[Any], tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    done = run(file, "high-load-2", "--policy", "srpt", "--seed", "5", "--width", "0.1", "--checkpoint", str(kept))
    assert done.exit_code == 0, done.output
    assert [policy for _, policy, _ in asked] == [file, "srpt"]
    assert all((options["seed"], options["rel_half_width"]) == (5, 0.1) for _, _, options in asked)
    assert all(options["checkpoint"].parent == kept / "high-load-2" for _, _, options in asked)
    assert "20" in done.stdout
    assert "the model's is less by (%)" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("learned:none.json", "high-load-2"), "network 'none.json': cannot be read"),
        (("srpt", "high-load-3"), "name must be one of"),
        (("srpt", "high-load-2", "--width", "0"), "--width"),
        (("srpt", "high-load-2", "impatient-100"), "patience of the scenario must be None"),
    ],
)
def test_bad_input_is_refused_before_any_work(asked: list[Any], arguments: tuple[str, ...], message: str) -> None:
    done = run(*arguments)
    assert done.exit_code == 2
    assert message in done.stderr
    assert not asked
