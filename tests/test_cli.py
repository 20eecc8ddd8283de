"""The command line, from the arguments to stdout, stderr, the exit code and the files."""

from __future__ import annotations

import csv
import json
import math
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from made_results import made_comparison
from typer.testing import CliRunner, Result

from queue_env import __version__
from queue_env.cli import app
from queue_env.network import shipped_networks
from queue_env.rules import POLICIES
from queue_env.scenarios import SCENARIOS, scenario
from queue_env.simulator import simulate
from queue_env.theory import applicable
from queue_env.trace import load_trace

TRACES = Path(__file__).parents[2] / "shared" / "traces"
SMALL = ("--jobs", "2000")


def run(*arguments: str) -> Result:
    # Wide, so that no cell is wrapped in help and tables.
    return CliRunner().invoke(app, list(arguments), env={"COLUMNS": "200", "NO_COLOR": "1"})


def run_json(*arguments: str) -> dict[str, Any]:
    result = run(*arguments, "--json")
    assert result.exit_code == 0, result.stderr
    document = json.loads(result.stdout, parse_constant=pytest.fail)
    assert document["command"] == arguments[0]
    assert document["version"] == __version__
    return dict(document)


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """Four jobs of two servers; the last two columns have other names than the defaults."""
    path = tmp_path / "jobs.csv"
    path.write_text("arrival,size,tokens,wait\n0,1,10,9\n1,2,20,9\n2,1,10,0.5\n3,4,40,9\n")
    return path


# ---- help and start-up ----------------------------------------------------------------------------


IMPATIENT = [f"figure impatient-{name}" for name in ("waiting", "throughput", "service", "collapse", "crossing")]


@pytest.mark.parametrize(
    "command", ["list", "simulate", "theory", "bench", "figure tail", "figure frontier", *IMPATIENT]
)
def test_help_has_an_example(command: str) -> None:
    result = run(*command.split(), "--help")
    assert result.exit_code == 0
    assert f"Example: queue-env {command}" in result.stdout


def test_help_of_simulate_names_every_option() -> None:
    text = run("simulate", "--help").stdout
    options = {word for word in text.replace(",", " ").split() if word.startswith("--")}
    expected = "--trace --policy --jobs --seed --json --out --servers --load --arrival --size --patience"
    expected += " --clock --streams --threads --warmup --records --checkpoint --set"
    assert set(expected.split()) <= options


def test_version() -> None:
    result = run("--version")
    assert (result.exit_code, result.stdout) == (0, f"queue-env {__version__}\n")


@pytest.mark.parametrize("command", ["", "figure", "figure impatient-waiting"])
def test_help_loads_no_slow_library(command: str) -> None:
    code = (
        "import sys\n"
        "from queue_env.cli import main\n"
        "sys.argv = ['queue-env', *sys.argv[1:], '--help']\n"
        "try:\n    main()\n"
        "finally:\n"
        "    slow = {'numba', 'numpy', 'scipy', 'matplotlib', 'gymnasium', 'pyarrow'} & set(sys.modules)\n"
        "    print(sorted(slow), file=sys.stderr)\n"
    )
    done = subprocess.run([sys.executable, "-c", code, *command.split()], capture_output=True, text=True, check=True)
    assert "Usage" in done.stdout
    assert done.stderr == "[]\n"


def test_module_is_the_command_line() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "queue_env", "theory", "nowhere"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: scenario: name must be one of high-load-2")
    assert done.stderr.count("\n") == 1


# ---- list, theory, bench --------------------------------------------------------------------------


def test_list_shows_every_scenario_and_policy() -> None:
    result = run("list")
    first_words = [line.split()[0] for line in result.stdout.splitlines() if line.strip()]
    assert set(SCENARIOS) | set(POLICIES) | set(shipped_networks()) <= set(first_words)


def test_list_as_json() -> None:
    document = run_json("list")
    scenarios = {entry["name"]: entry for entry in document["scenarios"]}
    assert list(scenarios) == list(SCENARIOS)
    assert scenarios["high-load-2"]["regime"] == "high"
    assert scenarios["high-load-2"]["spare_capacity"] == pytest.approx(0.4)
    assert scenarios["low-load-4"]["regime"] == "lower"
    assert scenarios["impatient-100"]["patience"] == {"law": "exponential", "mean": 1.0}
    policies = {entry["name"]: entry for entry in document["policies"]}
    assert list(policies) == list(POLICIES)
    assert [entry["name"] for entry in document["learned"]] == list(shipped_networks())
    assert {item["name"]: item["default"] for item in policies["backlog-split"]["parameters"]} == {
        "b": 1.0,
        "kappa": 0.3,
    }


def test_theory_gives_every_value_that_applies_to_the_changed_scenario() -> None:
    document = run_json("theory", "light-2", "--set", "load=0.7", "--set", "servers=3")
    model = scenario("light-2", load=0.7, servers=3)
    assert document["scenario"] == model.to_dict()
    values = [(value.quantity, value.policy, value.value) for value in applicable(model)]
    assert [(entry["quantity"], entry["policy"], entry["value"]) for entry in document["values"]] == values


def test_theory_table_names_formula_and_source() -> None:
    lines = run("theory", "light-2").stdout.splitlines()
    (line,) = (line for line in lines if "mean response" in line and " ps " in line)
    assert "C(n,a)" in line
    assert "Cohen (1979)" in line
    assert "2.778" in line


def test_theory_of_infinite_variance_is_null_in_json() -> None:
    document = run_json("theory", "high-load-2", "--set", "servers=1")
    assert math.isinf(next(v.value for v in applicable(scenario("high-load-2", servers=1)) if v.policy == "fcfs"))
    assert next(entry["value"] for entry in document["values"] if entry["policy"] == "fcfs") is None


def test_theory_says_where_nothing_applies() -> None:
    result = run("theory", "impatient-dhr-100", "--set", "clock=sojourn")
    assert result.exit_code == 0
    assert result.stdout.startswith("No closed form applies to impatient-dhr-100")


def test_bench_prints_the_rows_it_gets(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[dict[str, object]] = []

    def run_bench(**options: object) -> list[dict[str, object]]:
        asked.append(options)
        return [{"case": "fcfs", "jobs_per_second": 12_345_678.0}, {"case": "srpt", "peer": "none"}]

    module = ModuleType("queue_env.bench")
    module.run_bench = run_bench  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "queue_env.bench", module)
    table = run("bench", "--jobs", "3e5", "--quick").stdout
    assert "jobs per second" in table
    assert "12,345,678" in table
    assert run_json("bench")["rows"][1] == {"case": "srpt", "peer": "none"}
    assert asked == [{"jobs": 300_000, "quick": True}, {"jobs": 2_000_000, "quick": False}]


def test_bench_times_the_environments() -> None:
    rows = run_json("bench", "--environments", "--quick")["rows"]
    assert rows[0]["environment"] == "CartPole-v1"
    assert all(row["steps_per_second"] > 0 for row in rows)
    if find_spec("stable_baselines3") is not None:
        assert rows[-1]["environment"].endswith("PPO training")
        assert 0 < rows[-1]["environment_share"] < 1


# ---- simulate -------------------------------------------------------------------------------------


def test_simulate_as_json_is_what_the_library_gives() -> None:
    document = run_json(
        *("simulate", "high-load-2", "--policy", "srpt", "--policy", "thresh-split:d=2", "--jobs", "2e3"),
        *("--seed", "7", "--set", 'sizes={"law":"exponential","mean":2}', "--load", "0.5", "--streams", "4"),
        *("--warmup", "0", "--threads", "1"),
    )
    model = scenario("high-load-2", sizes={"law": "exponential", "mean": 2}, load=0.5)
    expected = simulate(model, ["srpt", "thresh-split:d=2"], jobs=2000, seed=7, streams=4, warmup=0)
    for entry, (policy, result) in zip(document["results"], expected.items(), strict=True):
        assert entry["policy"] == policy
        assert entry["scenario"] == model.to_dict()
        assert entry["mean_response"]["value"] == result.mean_response
        assert (entry["jobs"], entry["streams"]) == (2000, 4)
    assert [entry["quantity"] for entry in document["differences"]] == [
        "mean_response",
        "mean_slowdown",
        "quantile:0.99",
    ]
    interval = expected.difference("thresh-split:d=2", "srpt")
    assert document["differences"][0] == {
        "policy": "thresh-split:d=2",
        "less": "srpt",
        "quantity": "mean_response",
        **interval._asdict(),
    }


def test_simulate_prints_tables_of_all_policies_that_can_run() -> None:
    result = run("simulate", "high-load-2", "--policy", "srpt", "--policy", "all", *SMALL)
    assert result.exit_code == 0
    assert result.stdout.startswith("high-load-2: 2 servers, load 0.8, c = min(1, spare) = 0.4; 2,000 jobs")
    first_words = [line.split()[0] for line in result.stdout.splitlines() if line.startswith("  ")]
    runnable = set(POLICIES) - {"loss-priority", "two-class"}
    # srpt is once in the tables of means, quantiles and normalised tails, and not in that of differences
    assert {word: first_words.count(word) for word in runnable} == {
        word: 3 if word == "srpt" else 4 for word in runnable
    }
    assert first_words.index("srpt") < first_words.index("fcfs")
    assert "Difference to srpt" in result.stdout
    assert result.stdout.rstrip().endswith("jobs/s")


def test_simulate_runs_srpt_by_default() -> None:
    document = run_json("simulate", "light-2", *SMALL)
    assert [entry["policy"] for entry in document["results"]] == ["srpt"]
    assert document["differences"] == []


def test_simulate_with_patience_shows_throughput_and_abandonment() -> None:
    result = run(
        *("simulate", "impatient-100", "--policy", "fcfs", "--policy", "loss-priority", *SMALL),
        *("--clock", "sojourn"),
    )
    assert "Throughput and abandonment" in result.stdout
    assert "c = min" not in result.stdout


def test_simulate_writes_its_files_and_replaces_older_ones(tmp_path: Path) -> None:
    out = tmp_path / "new" / "results"
    arguments = ("simulate", "high-load-2", "--policy", "srpt", "--policy", "thresh-split:d=2", *SMALL)
    first = run(*arguments, "--out", str(out), "--records", "--json")
    assert first.exit_code == 0, first.stderr
    names = {
        "result.json",
        "table.csv",
        "table.md",
        "tail.png",
        "records-srpt.npz",
        "records-thresh-split_d=2.npz",
    }
    assert {path.name for path in out.iterdir()} == names
    assert all(name in first.stderr for name in names)
    assert str(out) in first.stderr
    assert (out / "result.json").read_text() == first.stdout
    (srpt, split) = csv.DictReader((out / "table.csv").read_text().splitlines())
    document = json.loads(first.stdout)
    assert float(split["mean response"]) == document["results"][1]["mean_response"]["value"]
    assert srpt["difference mean response"] == ""
    assert (out / "table.md").read_text().startswith("high-load-2: 2 servers")
    assert (out / "tail.png").read_bytes().startswith(b"\x89PNG")
    with np.load(out / "records-srpt.npz") as records:
        times = records["departure_time"] - records["arrival_time"]
    assert times.mean() == pytest.approx(document["results"][0]["mean_response"]["value"])
    second = run(*arguments, "--seed", "1", "--out", str(out), "--json")
    assert (out / "result.json").read_text() == second.stdout != first.stdout


def test_simulate_goes_on_from_a_checkpoint(tmp_path: Path) -> None:
    arguments = ("simulate", "light-2", *SMALL, "--streams", "2", "--checkpoint", str(tmp_path / "run.npz"))
    first, second = run_json(*arguments), run_json(*arguments)
    assert first["results"][0].pop("seconds") > 0
    assert second["results"][0].pop("seconds") > 0
    assert first == second
    other = run(*arguments, "--seed", "1")
    assert other.exit_code == 2
    assert "checkpoint" in other.stderr


def test_simulate_runs_a_trace(trace: Path) -> None:
    """By hand, fcfs on two servers: the jobs leave at 1, 3, 3 and 7."""
    result = run("simulate", "--trace", str(trace), "--servers", "2", "--policy", "fcfs")
    assert result.stdout.startswith("jobs.csv: 2 servers, load 1.33; 4 jobs\n")
    assert "Response time [s]" in result.stdout
    assert "Slowdown" in result.stdout
    document = run_json("simulate", "--trace", str(trace), "--servers", "2", "--policy", "fcfs")
    assert document["results"][0]["mean_response"]["value"] == 2.0
    assert document["results"][0]["scenario"] is None
    assert run_json("simulate", "--trace", str(trace), "--servers", "2", "--jobs", "3")["results"][0]["jobs"] == 3


def test_simulate_reads_the_columns_and_the_load_it_is_told(trace: Path) -> None:
    document = run_json(
        *("simulate", "--trace", str(trace), "--servers", "1", "--load", "0.5", "--policy", "fcfs"),
        *("--arrival", "arrival", "--size", "0.1*tokens + 1", "--patience", "wait", "--clock", "sojourn"),
    )
    workload = load_trace(trace, arrival="arrival", size="0.1*tokens + 1", patience="wait", load=0.5, servers=1)
    expected = simulate(workload, "fcfs", servers=1, clock="sojourn")
    (found,) = document["results"]
    assert found["load"] == pytest.approx(0.5)
    assert found["abandoned"] == expected.abandoned == 1
    assert found["mean_response"]["value"] == expected.mean_response


def test_simulate_runs_all_policies_on_the_azure_trace() -> None:
    path = TRACES / "azure-llm-conversation-2023.csv"
    if not path.exists():
        pytest.skip(f"no trace at {path}")
    document = run_json(
        *("simulate", "--trace", str(path), "--servers", "4", "--load", "0.8", "--policy", "all"),
        *("--jobs", "2000"),
    )
    assert {entry["policy"] for entry in document["results"]} == set(POLICIES) - {"loss-priority", "two-class"}


# ---- what goes wrong ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("simulate high-load-3", "scenario: name must be one of"),
        ("simulate", "SCENARIO or --trace must be given"),
        ("simulate light-2 --policy sprt", "did you mean 'srpt'?"),
        ("simulate light-2 --policy thresh-split:d=-1", "thresh-split: d='-1'"),
        (
            "simulate light-2 --jobs 1.5",
            "--jobs must be a whole number >= 1, such as 20000 or 2e4, got '1.5'",
        ),
        ("simulate light-2 --jobs many", "--jobs must be a whole number"),
        ("simulate light-2 --jobs inf", "--jobs must be a whole number"),
        ("simulate light-2 --warmup -1", "--warmup must be a whole number >= 0"),
        ("simulate light-2 --load 1.5", "load must be < 1 without patience, got 1.5"),
        ("simulate light-2 --set load", "--set must be KEY=VALUE"),
        ("simulate light-2 --set sizes={alpha:2}", "not valid JSON"),
        ("simulate light-2 --set lod=0.5", "fields must be among"),
        ("simulate light-2 --clock wall", "clock must be one of queue, fractional, sojourn"),
        ("simulate light-2 --threads 0", "threads must be an integer of at least 1"),
        ("simulate light-2 --size tokens", "--size does not go with SCENARIO, got 'tokens'"),
        ("simulate light-2 --trace jobs.csv", "SCENARIO does not go with --trace, got 'light-2'"),
        ("simulate --trace jobs.csv", "--servers must be given with --trace"),
        ("simulate --trace nowhere.csv --servers 2", "nowhere.csv: No such file or directory"),
        ("simulate light-2 --records", "--records needs --out"),
        (
            "simulate light-2 --checkpoint nowhere/run.npz",
            "checkpoint must be a file in a folder that exists",
        ),
        ("theory light-2 --set load=2", "load must be < 1 without patience, got 2"),
        ("bench --jobs 0", "--jobs must be a whole number >= 1"),
    ],
)
def test_wrong_input_is_one_line_on_stderr(arguments: str, message: str) -> None:
    result = run(*arguments.split())
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.startswith("error: ")
    assert message in result.stderr
    assert result.stderr.count("\n") == 1


def test_out_that_cannot_be_written_is_refused_before_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("queue_env.simulator.simulate", lambda *_, **__: pytest.fail("the run began"))
    (tmp_path / "file").touch()
    result = run("simulate", "light-2", "--out", str(tmp_path / "file" / "deeper"))
    assert result.exit_code == 2
    assert f"--out must be a directory, but {tmp_path / 'file'} is a file" in result.stderr
    monkeypatch.setattr("os.access", lambda *_: False)
    result = run("simulate", "light-2", "--out", str(tmp_path / "new"))
    assert result.exit_code == 2
    assert f"can be written to, which {tmp_path} is not" in result.stderr
    monkeypatch.undo()
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    result = run("simulate", "light-2", "--out", str(tmp_path / "new"))
    assert result.exit_code == 2
    assert "install queue-env[plot]" in result.stderr
    assert not (tmp_path / "new").exists()


def test_interrupted_run_shows_what_was_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = made_comparison({"srpt": 1.0}, interrupted=True)
    monkeypatch.setattr("queue_env.simulator.simulate", lambda *_, **__: kept)
    result = run("simulate", "high-load-2", "--out", str(tmp_path))
    assert result.exit_code == 130
    assert "Response time" in result.stdout
    assert result.stderr.endswith("interrupted: kept the 200,000 jobs of the streams that had ended\n")
    assert json.loads((tmp_path / "result.json").read_text())["results"][0]["interrupted"] is True


def test_run_interrupted_before_anything_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("queue_env.simulator.simulate", stopped)
    result = run("simulate", "high-load-2")
    assert (result.exit_code, result.stdout) == (130, "")
    assert result.stderr == "interrupted: nothing was kept\n"
