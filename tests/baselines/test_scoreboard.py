"""The scoreboard: its files from known scores, its page, and that what is finished is kept."""

from __future__ import annotations

import csv
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from made_scores import made_score
from typer.testing import CliRunner, Result

from baselines import learned_policies
from baselines.scoreboard import UNFINISHED, _csv, app
from queue_env.rules import POLICIES
from queue_env.scenarios import SCENARIOS, Scenario, scenario
from queue_env.scoring.named_policies import stable_policies
from queue_env.scoring.score import Scores

VALUES = {"fcfs": 3.0, "srpt": 1.0, "dynasplit": 0.9}
TWO = ("--scenario", "high-load-2", "--scenario", "impatient-100", "--policy", "srpt", "--policy", "fcfs")


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str, dict[str, Any]]]:
    """Scores of known values in place of those that take minutes; what was asked for."""
    calls: list[tuple[str, str, dict[str, Any]]] = []

    def score(policy: Any, model: Scenario, **options: Any) -> Any:
        calls.append((model.name, str(policy), options))
        return made_score(policy, VALUES.get(policy, 5.0), model)

    monkeypatch.setattr("queue_env.scoring.score.score", score)
    return calls


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


class Page(HTMLParser):
    """The tags of a page with their attributes, and its texts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def test_files_hold_all_scenarios(asked: list[Any], tmp_path: Path) -> None:
    assert run(*TWO, "--out", str(tmp_path)).exit_code == 0
    assert {path.name for path in tmp_path.iterdir()} == {"scoreboard.md", "scoreboard.csv", "scoreboard.html"}
    text = (tmp_path / "scoreboard.md").read_text()
    assert text.index("## high-load-2") < text.index("| srpt") < text.index("| fcfs") < text.index("## impatient-100")
    rows = list(csv.DictReader((tmp_path / "scoreboard.csv").read_text().splitlines()))
    assert [(row["scenario"], row["policy"]) for row in rows][:2] == [("high-load-2", "srpt"), ("high-load-2", "fcfs")]
    assert float(rows[0]["score"]) == pytest.approx(1.0)
    assert float(rows[0]["R(100)"]) == pytest.approx(2.0)
    assert float(rows[0]["R(100)_low"]) < 2.0 < float(rows[0]["R(100)_high"])
    assert rows[2]["score"] == ""


def test_the_page_needs_nothing_from_elsewhere(asked: list[Any], tmp_path: Path) -> None:
    run(*TWO, "--out", str(tmp_path))
    text = (tmp_path / "scoreboard.html").read_text()
    page = Page(text)
    assert not re.search(r"@[A-Z]+@", text)
    assert not any({"src", "href"} & set(attributes) for _, attributes in page.tags)
    assert "import(" not in text
    assert "fetch(" not in text
    assert [attributes["data-scenario"] for _, attributes in page.tags if "data-scenario" in attributes] == [
        "high-load-2"
    ]
    assert sum(tag == "table" for tag, _ in page.tags) == 2
    assert {"srpt", "fcfs"} <= set(page.texts)
    curves = json.loads(text.partition('id="curves">')[2].partition("</script>")[0])
    assert curves["impatient-100"] == []
    srpt = curves["high-load-2"][0]
    assert (srpt["policy"], srpt["t"], srpt["value"]) == ("srpt", [1, 10, 100], [0.5, 1, 2])
    assert all(low < value < high for low, value, high in zip(srpt["low"], srpt["value"], srpt["high"], strict=True))
    assert len({curve["color"] for curve in curves["high-load-2"]}) == 2


def test_names_cannot_end_the_script(asked: list[Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("sys.argv", ["scoreboard", "</script><b>"])
    run(*TWO, "--out", str(tmp_path))
    assert "</script><b>" not in (tmp_path / "scoreboard.html").read_text()


def test_by_default_all_that_can_be_scored(asked: list[Any], tmp_path: Path) -> None:
    assert run("--out", str(tmp_path)).exit_code == 0
    assert {name for name, _, _ in asked} == set(SCENARIOS)
    for name in SCENARIOS:
        scored = [policy for model, policy, _ in asked if model == name]
        learned = [policy.name for policy in learned_policies().values() if name in policy.scenarios]
        assert scored == [*stable_policies(Scenario.from_dict(SCENARIOS[name])), *learned]
        assert {policy.partition(":")[0] for policy in scored} <= set(POLICIES) | set(learned_policies())
        assert len(scored) > 5


def test_json_has_the_rows(asked: list[Any], tmp_path: Path) -> None:
    document = json.loads(run(*TWO, "--json", "--out", str(tmp_path)).stdout)
    assert [(row["scenario"], row["policy"]) for row in document["rows"][:2]] == [
        ("high-load-2", "srpt"),
        ("high-load-2", "fcfs"),
    ]


def test_an_interrupt_keeps_what_is_finished(asked: list[Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def interrupted(policy: Any, model: Scenario, checkpoint: Path, **options: Any) -> Any:
        checkpoint.write_text("half")
        raise KeyboardInterrupt

    monkeypatch.setattr("queue_env.scoring.score.score", interrupted)
    result = run(*TWO, "--out", str(tmp_path))
    assert result.exit_code == 130
    assert "goes on" in result.stderr
    assert len(list((tmp_path / UNFINISHED / "high-load-2").iterdir())) == 1
    assert not (tmp_path / "scoreboard.md").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--scenario", "high-load-3"), "high-load-3"),
        (("--policy", "best"), "best"),
        (("--width", "0"), "--width"),
        (("--jobs", "many"), "--jobs"),
        (("--seed", "-1"), "--seed"),
        (("--scenario", "high-load-2", "--policy", "thresh-split:d=10"), "stable"),
    ],
)
def test_bad_arguments_are_refused_before_any_work(
    asked: list[Any], tmp_path: Path, arguments: tuple[str, ...], message: str
) -> None:
    result = run(*arguments, "--out", str(tmp_path / "board"))
    assert result.exit_code == 2
    assert message in result.stderr
    assert not asked
    assert not (tmp_path / "board").exists()


def test_times_are_in_mean_service_times_however_the_law_is_given() -> None:
    model = scenario("high-load-2", sizes={"law": "pareto", "alpha": 1.5, "minimum": 1.0})  # of mean 3
    made = made_score("srpt", 1.0, model)
    row = replace(made, plain=replace(made.plain, sizes=model.sizes))
    assert row.t == pytest.approx([3, 30, 300])
    assert "R(1),R(1)_low,R(1)_high,R(10)," in _csv({"mine": Scores([row])}).splitlines()[0]
