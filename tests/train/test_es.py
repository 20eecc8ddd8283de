"""The search: what it starts from, what it keeps, and that it goes on to the bit after it was killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from queue_env.network import read_network
from queue_env.rules import parse_policy
from queue_env.scenarios import scenario
from tests.train.small import make_small
from train.es import app
from train.search import _CHECK, REFERENCES, STATE, Search, Task

ROOT = Path(__file__).parents[2]
SMALL = ("--scenario", "high-load-2", "--population", "4", "--replications", "2", "--seed", "3")


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    make_small(monkeypatch)


def run(out: Path, *arguments: str) -> Result:
    return CliRunner().invoke(app, [*SMALL, "--out", str(out), *arguments], env={"COLUMNS": "200", "NO_COLOR": "1"})


def kept(out: Path) -> Any:
    return json.loads(out.with_suffix(".search").read_text())


def test_help_loads_no_heavy_package() -> None:
    code = "import sys, train.es; print({'torch', 'numba', 'gymnasium'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.strip() == "set()"


# ---- where it begins -----------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "b"), [("high-load-2", 1.0), ("high-load-4", 3.0)])
@pytest.mark.parametrize("hidden", [(), (1,), (5,), (4, 3)])
def test_it_begins_near_backlog_split(hidden: tuple[int, ...], name: str, b: float) -> None:
    task = Task((name,), hidden, 6, 2, 0)
    network = task.network(task.first)
    assert network.widths == (len(STATE), *hidden, 1)
    rows = np.zeros((3, len(STATE)))
    rows[:, STATE.index("anchor_size")] = np.log1p([100.0, 100.0, 100.0])
    threshold = b * 101**0.3
    rows[:, STATE.index("anchor_remaining")] = np.log1p(100.0)
    rows[:, STATE.index("others_work")] = np.log([threshold / 10, threshold, threshold * 10])
    below, at, above = network.rates(rows)
    assert below > 0.94
    assert below > at > above
    assert above < 0.06


@pytest.mark.parametrize("hidden", [(5,), (4, 3)])
def test_with_hidden_numbers_it_begins_near_srpt_too(hidden: tuple[int, ...]) -> None:
    task = Task(("high-load-2",), hidden, 6, 2, 0)
    rows = np.zeros((2, len(STATE)))
    rows[:, STATE.index("anchor_size")] = np.log(100.0)
    rows[:, STATE.index("others_work")] = np.log(1e4)
    rows[:, STATE.index("next_remaining")] = np.log(3.0)
    rows[:, STATE.index("anchor_remaining")] = np.log([0.3, 30.0])
    less, more = task.network(task.first).rates(rows)
    assert less > 0.9
    assert more < 0.1


@pytest.mark.parametrize("hidden", [(), (3,)])
def test_it_can_begin_at_nothing(hidden: tuple[int, ...]) -> None:
    task = Task(("high-load-2",), hidden, 6, 2, 0, "zero")
    rows = np.random.default_rng(1).normal(size=(5, len(STATE)))
    np.testing.assert_array_equal(task.network(task.first).rates(rows), 0.5)


def test_what_differs_between_scenarios_is_seen() -> None:
    assert Task(("high-load-2",), (), 6, 2, 0).features == STATE
    assert Task(("high-load-2", "low-load-4"), (), 6, 2, 0).features == (*STATE, "servers", "load", "spare")


# ---- runs ----------------------------------------------------------------------------------------


def test_a_run_writes_the_best_policy_and_how_it_was_found(tmp_path: Path) -> None:
    out = tmp_path / "new" / "policy.json"
    done = run(out, "--generations", "3", "--hidden", "2", "--json")
    assert done.exit_code == 0, done.output
    document = json.loads(done.stdout)
    network, training = read_network(out)
    assert network.widths == (8, 2, 1)
    assert training["scenarios"] == ["high-load-2"]
    assert training["command"].startswith("python -m train.es")
    assert training["generations"] == 3
    history = kept(out)["history"]
    assert [len(values) for values, _ in history] == [4, 4, 4]
    values = [validation for _, validation in history]
    assert training["best_generation"] == 1 + int(np.argmin(values))
    assert training["validation"]["learned"] == min(values)
    assert set(training["validation"]) == set(training["fresh"]["high-load-2"]) == {"learned", *REFERENCES}
    assert document["training"] == training
    low, high = training["fresh"]["high-load-2"]["srpt"]["score"][1:]
    assert low < high
    assert parse_policy(f"learned:{out}").user is not None


def test_the_kept_policy_is_the_best_mean(tmp_path: Path) -> None:
    task = Task(("high-load-2",), (), 4, 2, 3)
    with ThreadPoolExecutor(2) as pool:
        search = Search(task, pool, tmp_path / "x.search")
        found = list(search.run(3, lambda: None))
        check = task.seeds(_CHECK, count=2)
        again = search._values([search.best.point], check, search._guards(check, lambda: None), lambda: None)
    assert search.best.validation == min(generation.validation for generation in found) == again[0]
    assert [generation.number for generation in found] == [1, 2, 3]
    assert len({generation.values for generation in found}) == 3


def test_the_score_is_over_the_range_that_is_asked_for(tmp_path: Path) -> None:
    out = tmp_path / "policy.json"
    assert run(out, "--generations", "1", "--range", "2", "200").exit_code == 0
    assert kept(out)["task"]["tail_range"] == [2.0, 200.0]
    with ThreadPoolExecutor(2) as pool:
        found = Search(Task(("high-load-2",), (), 4, 2, 3, tail_range=(2.0, 200.0)), pool, tmp_path / "x.search")
        usual = Search(Task(("high-load-2",), (), 4, 2, 3), pool, tmp_path / "y.search")
    assert found._objectives[0].times[[1, -1]] == pytest.approx([2.0, 200.0])
    assert found.references != usual.references
    changed = run(out, "--generations", "2", "--resume")
    assert "tail_range must be [2.0, 200.0], that of the search" in changed.stderr


def test_the_tail_may_be_above_that_of_srpt_by_a_share(tmp_path: Path) -> None:
    with ThreadPoolExecutor(2) as pool:
        near = Search(Task(("high-load-2",), (), 4, 2, 3, within=0.05), pool, tmp_path / "x.search")
        usual = Search(Task(("high-load-2",), (), 4, 2, 3), pool, tmp_path / "y.search")
        tails = near._objectives[0].measures(("srpt", "dynasplit"), near._check, pool, lambda: None).mean(axis=1)[:, 1:]
    np.testing.assert_allclose(near._check_guards[0], 1.05 * tails[0])
    np.testing.assert_allclose(usual._check_guards[0], tails.max(axis=0))
    # The score of dynasplit, whose tail is above, counts as larger by four times the share by which it is.
    excess = (tails[1] / (1.05 * tails[0])).max() - 1
    assert near.references["dynasplit"] == pytest.approx(usual.references["dynasplit"] * (1 + 4 * excess))
    assert near.references["srpt"] == usual.references["srpt"]


def test_the_result_does_not_depend_on_threads(tmp_path: Path) -> None:
    for threads in ("1", "2"):
        assert run(tmp_path / f"{threads}.json", "--generations", "2", "--threads", threads).exit_code == 0
    one, two = (kept(tmp_path / f"{threads}.json") for threads in ("1", "2"))
    assert one == two
    networks = [read_network(tmp_path / f"{threads}.json")[0].parameters for threads in ("1", "2")]
    assert networks[0] == networks[1]


def test_several_scenarios_share_one_policy(tmp_path: Path) -> None:
    out = tmp_path / "policy.json"
    done = run(out, "--scenario", "high-load-2,high-load-4", "--generations", "1")
    assert done.exit_code == 0, done.output
    network, training = read_network(out)
    assert network.features == (*STATE, "servers", "load", "spare")[: len(network.features)]
    assert list(training["fresh"]) == ["high-load-2", "high-load-4"]
    assert training["validation"]["srpt"] == pytest.approx(1.0)
    assert "high-load-4" in done.stdout


def test_curves_are_written_for_tensorboard(tmp_path: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    out, curves = tmp_path / "policy.json", tmp_path / "curves"
    assert run(out, "--generations", "2", "--tensorboard", str(curves)).exit_code == 0
    expected = {name: [value] * 2 for name, value in kept(out)["references"].items()}
    expected["learned"] = [validation for _, validation in kept(out)["history"]]
    for name, values in expected.items():
        events = EventAccumulator(str(curves / name))
        events.Reload()
        tag = "tail score on the jobs of the validation"
        tensors = [event.tensor_proto.float_val[0] for event in events.Tensors(tag)]
        assert [event.step for event in events.Tensors(tag)] == [1, 2]
        np.testing.assert_allclose(tensors, values, rtol=1e-6)


# ---- going on ------------------------------------------------------------------------------------


def test_a_search_that_was_killed_goes_on_to_the_bit(tmp_path: Path) -> None:
    whole, killed = tmp_path / "whole.json", tmp_path / "killed.json"
    assert run(whole, "--generations", "4").exit_code == 0
    script = f"""
import pytest
from tests.train.small import make_small
from train.es import app
make_small(pytest.MonkeyPatch())
app({[*SMALL, "--out", str(killed), "--generations", "1000"]!r})
"""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        [sys.executable, "-c", script], cwd=ROOT, env=environment, stderr=subprocess.DEVNULL
    ) as process:
        end = time.monotonic() + 300
        while not killed.exists() and process.poll() is None:
            assert time.monotonic() < end
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
    history = kept(killed)["history"]
    assert 1 <= len(history) < 1000
    assert run(killed, "--generations", str(len(history)), "--resume").exit_code == 0
    assert kept(killed)["history"] == history
    wanted = max(len(history), 4)
    assert run(killed, "--generations", str(wanted), "--resume").exit_code == 0
    assert run(whole, "--generations", str(wanted), "--resume").exit_code == 0
    assert kept(killed) == kept(whole)
    assert read_network(killed)[0].parameters == read_network(whole)[0].parameters


def test_an_interrupt_says_how_to_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "policy.json"
    assert run(out, "--generations", "1").exit_code == 0

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Search, "final", interrupt)
    done = run(out, "--generations", "1", "--resume")
    assert done.exit_code == 130
    assert f"interrupted: the same command with --resume goes on from {out.with_suffix('.search')}" in done.stderr


# ---- what is wrong -------------------------------------------------------------------------------

WIDTHS = "at most 7 layers, each a whole number from 1 to 32, such as 8 or 8,8"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--scenario", "high-load-3"), "name must be one of high-load-2"),
        (("--scenario", "light-2"), "of a heavy tail"),
        (("--scenario", "impatient-100"), "patience of the scenario must be None"),
        (("--scenario", "high-load-2, high-load-2"), "--scenario must name each scenario once, got 'high-load-2, hi"),
        (("--hidden", "x"), f"--hidden must be {WIDTHS}, got 'x'"),
        (("--hidden", "33"), f"--hidden must be {WIDTHS}, got '33'"),
        (("--hidden", "2,,2"), f"--hidden must be {WIDTHS}, got '2,,2'"),
        (("--hidden", "2,"), f"--hidden must be {WIDTHS}, got '2,'"),
        (("--hidden", "1,1,1,1,1,1,1,1"), f"--hidden must be {WIDTHS}, got '1,1,1,1,1,1,1,1'"),
        (("--generations", "0"), "generations must be an integer of at least 1, got 0"),
        (("--population", "3"), "population must be an integer of at least 4, got 3"),
        (("--replications", "0"), "replications must be an integer of at least 1, got 0"),
        (("--seed", "-1"), "seed must be an integer of at least 0, got -1"),
        (("--threads", "0"), "--threads must be at least 1, got 0"),
        (("--start", "best"), "--start must be rule or zero, got 'best'"),
        (("--within", "-0.1"), "within must be a finite number > 0, got -0.1"),
        (
            ("--range", "10", "1"),
            "--range must be two times, 0 < T0 < T1, and T0 <= 100 [mean service times], got 10 1",
        ),
        (("--range", "101", "1000"), "T0 <= 100 [mean service times], got 101 1000"),
        (("--resume",), "is no search to resume"),
    ],
)
def test_input_that_is_wrong(tmp_path: Path, arguments: tuple[str, ...], message: str) -> None:
    done = run(tmp_path / "policy.json", *arguments)
    assert done.exit_code == 2
    assert message in done.stderr
    assert not (tmp_path / "policy.json").exists()


def test_files_that_are_wrong(tmp_path: Path) -> None:
    done = run(tmp_path / "policy.zip")
    assert "--out must be a file whose name ends in .json" in done.stderr
    (tmp_path / "policy.search").write_text("{}")
    assert "--resume must be given, or" in run(tmp_path / "policy.json").stderr
    assert "is no search to resume: 'task'" in run(tmp_path / "policy.json", "--resume").stderr


def test_a_policy_that_cannot_be_written_is_refused_before_any_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def work(*_: object, **__: object) -> None:
        raise AssertionError("work began")

    monkeypatch.setattr(Search, "__init__", work)
    (tmp_path / "file").write_text("")
    (tmp_path / "directory.json").mkdir()
    (tmp_path / "kept.search").mkdir()
    for out, message in (
        (tmp_path / "file" / "x.json", f"--out must be a file in a directory, but {tmp_path / 'file'} is a file"),
        (tmp_path / "directory.json", f"--out must be a file, but {tmp_path / 'directory.json'} is a directory"),
        (tmp_path / "kept.json", f"--out must be a file, but {tmp_path / 'kept.search'} is a directory"),
        (tmp_path / ("x" * 245 + ".json"), "--out must be a file that can be written, got '"),
        (Path("/proc/x.json"), "--out must be a file"),  # root may write there, but for the system's refusal
    ):
        done = run(out)
        assert done.exit_code == 2, done.output
        assert message in done.stderr
    assert {file.name for file in tmp_path.iterdir()} == {"file", "directory.json", "kept.search"}
    assert isinstance(run(tmp_path / "new" / "x.json").exception, AssertionError)
    assert list((tmp_path / "new").iterdir()) == []


def test_fewer_generations_than_are_done_are_refused(tmp_path: Path) -> None:
    out = tmp_path / "policy.json"
    assert run(out, "--generations", "2").exit_code == 0
    before = {file: file.read_bytes() for file in (out, out.with_suffix(".search"))}
    done = run(out, "--generations", "1", "--resume")
    assert done.exit_code == 2
    assert f"generations must be at least 2, which '{out.with_suffix('.search')}' has already, got 1" in done.stderr
    assert {file: file.read_bytes() for file in before} == before
    assert sorted(tmp_path.iterdir()) == sorted(before)


def test_the_help_says_how_many_candidates_are_allowed() -> None:
    text = CliRunner().invoke(app, ["--help"], env={"COLUMNS": "200", "NO_COLOR": "1"}).stdout
    assert "Candidates of a generation, at least 4;" in text


def test_only_the_same_search_is_resumed(tmp_path: Path) -> None:
    out = tmp_path / "policy.json"
    assert run(out, "--generations", "1").exit_code == 0
    for option, value, name in (
        ("--seed", "4", "seed"),
        ("--hidden", "2", "hidden"),
        ("--scenario", "high-load-4", "scen"),
    ):
        done = run(out, "--generations", "2", "--resume", option, value)
        assert done.exit_code == 2
        assert f"train.es: {name}" in done.stderr
        assert "that of the search in" in done.stderr


def test_models_are_those_of_the_names() -> None:
    assert Task(("high-load-2", "high-load-4"), (), 6, 2, 0).models == (
        scenario("high-load-2"),
        scenario("high-load-4"),
    )
