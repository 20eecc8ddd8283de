"""`queue-env explain` and `queue-env export` on the command line."""

from __future__ import annotations

import csv
import json
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from queue_env import simulate
from queue_env.cli import app
from queue_env.network import Network, read_network, write_network
from tests.networks import random_network

FEW = ["--states", "3e3"]


def invoke(*arguments: object) -> str:
    done = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert done.exit_code == 0, done.output
    return done.stdout


def refused(*arguments: object) -> str:
    done = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert done.exit_code == 2, done.output
    assert done.stderr.count("\n") == 1
    return done.stderr


def test_a_shipped_policy_as_pictures_words_and_a_rule(tmp_path: Path) -> None:
    shown = invoke("explain", "learned-high-load-2", *FEW, "--out", tmp_path / "out", "--distill", tmp_path / "r.json")
    assert "learned-high-load-2 on high-load-2: 2 servers" in shown
    assert "either: A: the others' work is low" in shown
    made = {path.name for path in (tmp_path / "out").iterdir()}
    assert made == {"rates.png", "structure.png", "rates.csv", "structure.csv", "features.csv"}
    assert (tmp_path / "out" / "rates.png").read_bytes().startswith(b"\x89PNG")
    rows = list(csv.DictReader((tmp_path / "out" / "rates.csv").read_text().splitlines()))
    labels = ["learned-high-load-2", "dynasplit", "backlog-split:b=1,kappa=0.3"]
    assert list(rows[0]) == ["anchor_size", "others_work", "visits", "mean rate", *labels]
    visited = [row for row in rows if int(row["visits"]) >= 3]
    assert all(0 <= float(row["learned-high-load-2"]) <= 1 for row in visited)
    assert all(row["learned-high-load-2"] == "" for row in rows if int(row["visits"]) == 0)
    network, training = read_network(tmp_path / "r.json")
    assert training["fitted_to"] == "learned-high-load-2"
    assert len(network.features) == 4
    results = simulate("high-load-2", ["learned-high-load-2", f"learned:{tmp_path / 'r.json'}"], jobs=20_000)
    one, other = results.values()
    assert other.mean_response == pytest.approx(one.mean_response, rel=0.05)


def test_json_of_a_reference_policy() -> None:
    document = json.loads(invoke("explain", "backlog-split", "--scenario", "high-load-4", *FEW, "--json"))
    assert document["scenario"]["name"] == "high-load-4"
    assert sum(document["shares"].values()) == pytest.approx(1.0)
    assert document["shares"]["between"] == 0.0
    assert [row["feature"] for row in document["features"]] == ["others_work", "anchor_size"]
    assert {rule["rule"] for rule in document["rules"]} == {"either", "logistic"}
    assert document == json.loads(invoke("explain", "backlog-split", "--scenario", "high-load-4", *FEW, "--json"))


def test_others_beside_it_and_svg(tmp_path: Path) -> None:
    invoke("explain", "split", *FEW, "--policy", "learned-high-load-2", "--out", tmp_path, "--svg")
    header = (tmp_path / "rates.csv").read_text().splitlines()[0]
    assert header.endswith("split,learned-high-load-2")
    assert "<svg" in (tmp_path / "rates.svg").read_text()


def test_without_spare_capacity(tmp_path: Path) -> None:
    write_network(tmp_path / "net.json", random_network(1), {})
    shown = invoke("explain", f"learned:{tmp_path / 'net.json'}", "--scenario", "impatient-100", "--states", "300")
    assert "impatient-100: 100 servers" in shown


def test_what_explain_refuses(tmp_path: Path) -> None:
    assert "got 'srpt'" in refused("explain", "srpt")
    assert "got 'fcfs'" in refused("explain", "dynasplit", "--policy", "fcfs")
    assert "--states must be a whole number >= 1" in refused("explain", "split", "--states", "0")
    assert "--seed must be at least 0" in refused("explain", "split", "--seed", "-1")
    (tmp_path / "file").touch()
    assert "--out must be a directory" in refused("explain", "split", "--out", tmp_path / "file")
    assert "--distill must be a file in a directory" in refused("explain", "split", "--distill", tmp_path / "file/r")
    assert "is a directory" in refused("explain", "split", "--distill", tmp_path)
    assert "--svg needs --out" in refused("explain", "split", "--svg")


def test_states_too_few_for_a_map(tmp_path: Path) -> None:
    invoke("explain", "learned-high-load-2", "--states", "4", "--out", tmp_path)
    rows = list(csv.DictReader((tmp_path / "rates.csv").read_text().splitlines()))
    assert {row["learned-high-load-2"] for row in rows} == {""}


def test_the_command_in_a_rule_makes_it_again(tmp_path: Path) -> None:
    arguments = ["explain", "split", "--states", "2000", "--seed", "3", "--distill", str(tmp_path / "rule.json")]
    invoke(*arguments)
    first, training = read_network(tmp_path / "rule.json")
    (tmp_path / "rule.json").unlink()
    invoke(*shlex.split(training["command"])[1:])
    again, _ = read_network(tmp_path / "rule.json")
    assert [part.tolist() for part in again.weights] == [part.tolist() for part in first.weights]


@pytest.mark.parametrize(("weight", "said"), [(-40.0, "e^"), (0.0, "never on both sides")])
def test_a_rate_that_does_not_depend_on_the_others(tmp_path: Path, weight: float, said: str) -> None:
    network = Network(("anchor_size",), (np.array([[weight]]),), (np.array([-weight / 2]),))
    write_network(tmp_path / "net.json", network, {})
    shown = invoke("explain", f"learned:{tmp_path / 'net.json'}", "--states", "2000")
    assert said in shown.splitlines()[-1]


@pytest.mark.parametrize("scenarios", ["high-load-2", 5, [{"name": "high-load-2"}]])
def test_a_file_that_says_wrongly_on_what_it_was_trained(tmp_path: Path, scenarios: Any) -> None:
    write_network(tmp_path / "net.json", random_network(1), {"scenarios": scenarios})
    assert "must be a list of names" in refused("explain", f"learned:{tmp_path / 'net.json'}")


def test_export(tmp_path: Path) -> None:
    pytest.importorskip("onnx")
    pytest.importorskip("torch")
    files = tmp_path / "a.onnx", tmp_path / "b.pt2"
    document = json.loads(invoke("export", "learned-high-load-2", "--onnx", files[0], "--torch", files[1], "--json"))
    assert document["files"] == [str(path) for path in files]
    assert document["features"][0] == "anchor_size"
    assert all(path.stat().st_size > 100 for path in files)


def test_what_export_refuses(tmp_path: Path) -> None:
    assert "'srpt' is no learned policy" in refused("export", "srpt", "--onnx", tmp_path / "a.onnx")
    assert "nothing to write" in refused("export", "learned-high-load-2")
    assert "--onnx must be a file whose name ends in .onnx" in refused("export", "learned-high-load-2", "--onnx", "a")
    assert "cannot be read" in refused("export", "learned:none.json", "--onnx", tmp_path / "a.onnx")
    (tmp_path / "b.onnx").mkdir()
    assert "is a directory" in refused("export", "learned-high-load-2", "--onnx", tmp_path / "b.onnx")


def test_maps_are_numbers_that_can_be_read_back(tmp_path: Path) -> None:
    invoke("explain", "dynasplit", *FEW, "--out", tmp_path)
    rows = list(csv.DictReader((tmp_path / "rates.csv").read_text().splitlines()))
    sizes, rates = (np.array([float(row[key]) for row in rows]) for key in ("anchor_size", "dynasplit"))
    np.testing.assert_allclose(rates, 0.4 - 0.4 / (2 + np.log1p(sizes)))
