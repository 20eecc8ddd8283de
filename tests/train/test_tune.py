"""The search of parameters: what it runs, which candidate it takes, and what it reports."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from queue_env import Comparison
from queue_env.scenarios import scenario
from queue_env.simulator import simulate
from train import tune as module
from train.tune import app, tune

MODEL = scenario("high-load-2")
LABELS = ["thresh-split:d=0.8", "thresh-split:d=1.2", "thresh-split:d=1.6", "thresh-split:d=3"]
ABLE = LABELS[1:3]
JOBS = 5000
COMMAND = ("high-load-2", "--policy", "thresh-split", "--parameter", "d=0.8,1.2,1.6,3", "--jobs", f"{JOBS}")


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, [*COMMAND, *arguments], env={"COLUMNS": "200", "NO_COLOR": "1"})


@pytest.fixture
def no_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "simulate", lambda *_, **__: pytest.fail("the run began"))


def test_candidates_meet_the_same_jobs_and_the_best_meets_others() -> None:
    found = tune(MODEL, LABELS, "quantile:0.9", JOBS, seed=4)
    same = simulate(MODEL, ABLE, jobs=JOBS, seed=4)
    values = {label: same[label].interval("quantile:0.9") for label in ABLE}
    assert {label: result.interval("quantile:0.9") for label, result in found.results.items()} == values
    assert found.best == min(ABLE, key=lambda label: values[label].value)
    assert found.again == simulate(MODEL, found.best, jobs=JOBS, seed=5).interval("quantile:0.9")
    other = next(label for label in ABLE if label != found.best)
    assert found.difference(other) == same.difference(other, found.best, "quantile:0.9")
    assert found.difference(found.best) is None


def test_candidates_that_cannot_run_are_listed_with_the_reason() -> None:
    found = tune(MODEL, LABELS, "mean_response", JOBS)
    assert list(found.results) == ABLE
    assert list(found.refused) == [LABELS[0], LABELS[3]]
    assert all("overloads one side" in reason for reason in found.refused.values())


def test_the_largest_throughput_is_the_best() -> None:
    model = scenario("impatient-100", servers=5, load=1.5)
    labels = [f"loss-priority:tau={tau}" for tau in (0.1, 1, 10)]
    found = tune(model, labels, "throughput", 400_000)  # so many that there are several streams, and an interval
    rates = {label: found.results[label].throughput for label in labels}
    assert found.best == max(rates, key=rates.__getitem__)
    assert len(set(rates.values())) > 1


def test_tails_of_which_nothing_was_seen_are_no_reason_to_choose() -> None:
    seen = simulate(MODEL, ABLE, jobs=JOBS)
    between = sum(sorted(result.max_response for result in seen.values())) / 2
    found = tune(MODEL, ABLE, f"tail:{between}", JOBS)
    assert found.best == max(ABLE, key=lambda label: seen[label].max_response)
    with pytest.raises(ValueError, match=r"tail:1e9: none of the 2 candidates has an interval with jobs=5000"):
        tune(MODEL, ABLE, "tail:1e9", JOBS)


@pytest.mark.usefixtures("no_run")
@pytest.mark.parametrize(
    ("name", "labels", "quantity", "message"),
    [
        ("high-load-2", ABLE, "mean_respons", "perhaps mean_response"),
        ("high-load-2", ABLE, "quantile:2", "number after quantile must be between 0 and 1"),
        ("high-load-2", ABLE, "tail:-1", "t must be >= 0"),
        ("impatient-100", ["srpt"], "normalised_tail:10", "no bound on the tail in overload"),
        ("high-load-2", [LABELS[0], LABELS[3]], "mean_response", "none of 2 candidates can run; the first: thresh-sp"),
    ],
)
def test_bad_input_is_refused_before_the_run(name: str, labels: list[str], quantity: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        tune(scenario(name), labels, quantity, JOBS)


def test_half_a_search_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*arguments: Any, **options: Any) -> Comparison:
        results = simulate(*arguments, **options)
        return Comparison(dataclasses.replace(result, interrupted=True) for result in results.values())

    monkeypatch.setattr(module, "simulate", interrupted)
    result = run()
    assert (result.exit_code, result.stdout, result.stderr) == (130, "", "interrupted: nothing was kept\n")


# ---- command line -----------------------------------------------------------------------------------------


def test_tables() -> None:
    result = run("--quantity", "normalised_tail:10")
    assert result.exit_code == 0
    assert result.stdout.startswith("high-load-2, 5,000 jobs, seed 0\n")
    candidates, refused, best = result.stdout.split("\n\n")[1::2]
    assert [line.split()[0] for line in candidates.splitlines()[2:]] == ABLE
    assert [line.split()[0] for line in refused.splitlines()[2:]] == [LABELS[0], LABELS[3]]
    assert best.splitlines()[2].split()[0] == tune(MODEL, LABELS, "normalised_tail:10", JOBS).best


def test_json_goes_to_stdout_and_to_the_file(tmp_path: Path) -> None:
    path = tmp_path / "new" / "tuned.json"
    result = run("--json", "--seed", "7", "--set", "load=0.75", "--out", str(path))
    assert result.exit_code == 0, result.stderr
    assert path.read_text() == result.stdout
    document = json.loads(result.stdout, parse_constant=pytest.fail)
    found = tune(MODEL.replace(load=0.75), LABELS, "mean_response", JOBS, seed=7)
    assert document["scenario"]["load"] == 0.75
    assert [entry["policy"] for entry in document["candidates"]] == list(found.results)
    assert [entry["policy"] for entry in document["refused"]] == list(found.refused)
    assert document["best"] == {"policy": found.best, "seed": 8, **found.again._asdict()}
    for entry in document["candidates"]:
        difference = found.difference(entry["policy"])
        assert entry["difference"] == (None if difference is None else difference._asdict())
        assert entry["value"] == found.results[entry["policy"]].mean_response


@pytest.mark.usefixtures("no_run")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--jobs", "x"), "--jobs must be a whole number >= 1, such as 20000 or 2e4, got 'x'"),
        (("--quantity", "mean"), "result: quantity must be one of mean_response"),
        (("--parameter", "d=2"), "--parameter must name each parameter once, got d, d"),
        (("--set", "load=2"), "scenario: load must be < 1 without patience, got 2.0"),
        (("--out", "."), "--out must be a file, but . is a directory"),
        (("--out", f"{__file__}/new"), f"the directory of --out must be a directory, but {__file__} is a file"),
    ],
)
def test_errors_are_one_line(arguments: tuple[str, ...], message: str) -> None:
    result = run(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith(f"error: {message}")
    assert result.stderr.count("\n") == 1


def test_help_has_an_example() -> None:
    result = run("--help")
    assert result.exit_code == 0
    assert "Example: python -m train.tune high-load-2 --policy thresh-split" in result.stdout
