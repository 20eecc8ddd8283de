"""Networks as policies of the kernel: against the exact simulator and by themselves; their files."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from baselines.scoreboard import app as scoreboard
from queue_env import Workload, scenario, simulate
from queue_env.cli import app as cli
from queue_env.network import (
    FEATURES,
    NAMES,
    Network,
    NetworkPolicy,
    network_policy,
    read_network,
    shipped_networks,
    write_network,
)
from queue_env.rules import parse_policy
from tests.networks import random_network, random_policy
from tests.reference import Allocation, System
from tests.reference import simulate as simulate_exactly
from tests.reference.policies import AnchorRole, at_full_rate, with_anchor_rate
from tests.scoring.small import small_curve

SHAPES: list[tuple[tuple[int, ...], str]] = [((), "tanh"), ((3,), "tanh"), ((4, 5), "relu"), ((32,), "tanh")]


# ---- the law -------------------------------------------------------------------------------------


def random_jobs(seed: int, servers: int, count: int = 120) -> Workload:
    """Jobs at a load of about 0.9 whose sizes differ by orders of magnitude."""
    rng = np.random.default_rng(seed)
    return Workload(np.cumsum(rng.exponential(2.2 / servers, count)), rng.exponential(1.0, count) ** 2)


def output(network: Network, inputs: list[float]) -> float:
    """What a network gives, one number after the other."""
    values = inputs
    for layer, (weights, biases) in enumerate(zip(network.weights, network.biases, strict=True)):
        products = ([w * x for w, x in zip(row, values, strict=True)] for row in weights)
        sums = [float(bias) + sum(row) for bias, row in zip(biases, products, strict=True)]
        inner = math.tanh if network.activation == "tanh" else lambda x: max(x, 0.0)
        values = sums if layer == len(network.weights) - 1 else [inner(x) for x in sums]
    return 1 / (1 + math.exp(-values[0]))


@pytest.mark.parametrize(("hidden", "activation"), SHAPES)
@pytest.mark.parametrize("servers", [1, 2, 5])
def test_departures_are_those_of_the_exact_simulator(servers: int, hidden: tuple[int, ...], activation: str) -> None:
    jobs = random_jobs(servers, servers)
    network = random_network(10 * servers + len(hidden), hidden, activation)
    unit, load = float(jobs.sizes.mean()), jobs.load(servers)
    role, seen = AnchorRole(), []

    def rule(system: System) -> Allocation:
        if not system.jobs:
            return Allocation({})
        anchor = role(system)
        if len(system.jobs) <= servers:
            return at_full_rate(system.jobs)
        others = sorted((j for j in system.jobs if j is not anchor), key=lambda j: (j.remaining, j.number))
        following = others[servers - 1]
        work_like = [
            anchor.size,
            anchor.remaining,
            system.now - anchor.arrival_time,
            following.remaining,
            system.now - following.arrival_time,
            others[0].remaining,
            sum(job.remaining for job in others),
        ]
        inputs = [math.log1p(float(value) / unit) for value in work_like]
        inputs += [math.log(len(system.jobs) / servers), math.log(servers), load, servers * (1 - load)]
        seen.append(output(network, inputs))
        return with_anchor_rate(system, anchor, Fraction(seen[-1]))

    records = simulate(jobs, network_policy(network, name="net"), servers=servers, records=True).records
    exact = simulate_exactly(jobs.arrival_times.tolist(), jobs.sizes.tolist(), rule, servers)
    assert exact.well_conditioned()
    assert records is not None
    np.testing.assert_allclose(records["departure_time"], exact.arrays()["departure_times"], rtol=1e-9)
    np.testing.assert_allclose(records["waiting_time"], exact.arrays()["waiting_times"], rtol=1e-9, atol=1e-9)
    assert len(seen) > 20
    assert np.std(seen) > 0.01


def test_a_network_that_ignores_all_is_a_constant_margin() -> None:
    """On high-load-2, where delta = 0.4: a margin of a quarter of it leaves the anchor 0.3."""
    flat = Network(("load",), ([[0.0]],), ([math.log(0.3 / 0.7)],))
    results = simulate("high-load-2", [network_policy(flat, name="flat"), "dynasplit:margin=constant"], jobs=20_000)
    one, other = results.values()
    assert one.mean_response == pytest.approx(other.mean_response, rel=1e-9)
    assert one.quantile(0.999) == pytest.approx(other.quantile(0.999), rel=1e-9)


def test_rates_far_beyond_what_the_logistic_function_can_tell_from_zero_and_one() -> None:
    never, always = (Network(("load",), ([[0.0]],), ([bias],)) for bias in (-1e6, 1e6))
    np.testing.assert_array_equal([float(n.rates(np.ones((1, 1)))[0]) for n in (never, always)], [0.0, 1.0])
    jobs = random_jobs(7, 2)
    for network in (never, always):
        records = simulate(jobs, network_policy(network, name="net"), servers=2, records=True).records
        assert records is not None
        assert np.all(records["outcome"] == 0)


def test_the_scale_of_time_does_not_matter() -> None:
    policy = random_policy(5, (4,))
    sizes = {"law": "pareto", "alpha": 1.5}
    one, other = (
        simulate({"servers": 2, "load": 0.8, "sizes": sizes | {"mean": mean}}, policy, jobs=20_000) for mean in (1, 64)
    )
    assert other.mean_response == pytest.approx(64 * one.mean_response, rel=1e-9)


def test_results_do_not_depend_on_threads_and_go_on_from_a_checkpoint(tmp_path: Path) -> None:
    policy, arguments = random_policy(6, (4,)), {"jobs": 400_000, "seed": 3}
    one = simulate("high-load-2", policy, threads=1, checkpoint=tmp_path / "run", **arguments)
    for kept in (None, tmp_path / "run"):
        again = simulate("high-load-2", policy, threads=2, checkpoint=kept, **arguments)
        np.testing.assert_array_equal(again.response_counts, one.response_counts)
        assert again.mean_response == one.mean_response
    other = network_policy(random_network(7, (4,)), name=policy.name)
    with pytest.raises(ValueError, match=r"checkpoint .* of a run with policies="):
        simulate("high-load-2", other, checkpoint=tmp_path / "run", **arguments)


def test_every_feature_is_described() -> None:
    assert len(set(NAMES)) == len(FEATURES)
    assert all(feature.meaning for feature in FEATURES)


# ---- as vectors ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("hidden", "activation"), SHAPES)
def test_vectors(hidden: tuple[int, ...], activation: str) -> None:
    network = random_network(1, hidden, activation, NAMES[:4])
    again = Network.from_vector(NAMES[:4], hidden, network.vector, activation)
    assert again.parameters == network.parameters
    assert network.widths == (4, *hidden, 1)
    values = np.random.default_rng(2).normal(size=(5, 4))
    np.testing.assert_allclose(again.rates(values), [output(network, row) for row in values.tolist()], rtol=1e-12)
    for wrong in (network.vector[1:], np.append(network.vector, 0.0)):
        with pytest.raises(ValueError, match=r"network: (vector|weights)|reshape"):
            Network.from_vector(NAMES[:4], hidden, wrong, activation)


# ---- files ---------------------------------------------------------------------------------------


def test_a_file_gives_the_network_back(tmp_path: Path) -> None:
    network, path = random_network(3, (4,), "relu"), tmp_path / "net.json"
    write_network(path, network, {"command": "python -m train.es", "seed": 1})
    again, training = read_network(path)
    assert again.parameters == network.parameters
    assert training == {"command": "python -m train.es", "seed": 1}
    assert [file.name for file in tmp_path.iterdir()] == ["net.json"]
    policy = parse_policy(f"learned:{path}")
    assert policy.label == f"learned:{path}"
    assert isinstance(policy.user, NetworkPolicy)
    assert policy.user.training == training
    from_file, direct = (simulate("high-load-2", p, jobs=5000) for p in (policy, network_policy(network, name="net")))
    assert from_file.mean_response == direct.mean_response


def written(tmp_path: Path, **changes: Any) -> Path:
    path = tmp_path / "net.json"
    write_network(path, random_network(3, (2,), features=("load", "crowd")), {})
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))
    return path


def layer(weights: Any, biases: Any = None) -> dict[str, Any]:
    return {"weights": weights, "biases": [0] * len(weights) if biases is None else biases}


NUMBER = "must be a number from -1000000 to 1000000"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"format": "other"}, "must be an object with the format 'queue-env network'"),
        ({"version": 2}, "version must be 1, in which features mean what they mean here, got 2"),
        ({"features": ["load", "size"]}, "features must be names among anchor_size, .*, got"),
        ({"features": ["load", "load"]}, "features must be names among"),
        ({"features": 3}, "features must be a list of names, got 3"),
        ({"features": {"load": 1, "crowd": 2}}, "features must be a list of names, got {"),
        ({"features": ["load", ["crowd"]]}, "features must be names among"),
        ({"activation": "sin"}, "activation must be tanh or relu, got 'sin'"),
        ({"activation": None}, "activation must be tanh or relu, got None"),
        ({"widths": [2, 3, 1]}, r"widths must be \[2, 2, 1\], those of the layers, got"),
        ({"widths": None}, r"widths must be \[2, 2, 1\], those of the layers, got None"),
        ({"widths": [2, 2, True]}, r"widths must be \[2, 2, 1\], those of the layers, got \[2, 2, True\]"),
        ({"version": 1.0}, "version must be 1, in which features mean what they mean here, got 1.0"),
        ({"version": True}, "version must be 1, in which features mean what they mean here, got True"),
        ({"layers": None}, "layers must be a list of objects, got None"),
        ({"layers": [[1, 2]]}, r"layers\[0\] must be an object with weights and biases, got \[1, 2\]"),
        ({"layers": []}, "layers must be 1 to 8 layers of at most 32 numbers, the last of one"),
        ({"layers": [{"weights": [[1, 2]]}]}, r"layers\[0\]: 'biases' is missing"),
        (
            {"layers": [{"weights": [[1, 2]], "biases": [0], "scale": 2}]},
            r"layers\[0\]: the key 'scale' is not known, allowed: weights, biases",
        ),
        ({"note": "x"}, "the file: the key 'note' is not known, allowed: format, version, features, widths, activ"),
        ({"layers": [layer([[1, 2]] * 33)]}, "layers must be 1 to 8"),
        ({"layers": [layer([[1, 2]] * 2)]}, "layers must be 1 to 8"),
        ({"layers": [layer([[1, 2, 3]])]}, r"weights must be of shapes \[\(1, 2\)\], got"),
        (
            {"layers": [layer([[1, 2], [3]])]},
            r"the lengths of the rows of layers\[0\].weights must be equal, got \[2, 1\]",
        ),
        (
            {"layers": [layer([[1, 2], 3])]},
            r"layers\[0\].weights must be a list of rows of numbers, got \[\[1, 2\], 3\]",
        ),
        ({"layers": [layer("12")]}, r"layers\[0\].weights must be a list of rows of numbers, got '12'"),
        ({"layers": [layer([[1, 2]], 0)]}, r"layers\[0\].biases must be a list of numbers, got 0"),
        ({"layers": [layer([[1, 2]], [[0]])]}, r"layers\[0\].biases must be a list of numbers, got \[\[0\]\]"),
        ({"layers": [layer([[1, 2]], ["0"])]}, rf"layers\[0\].biases\[0\] {NUMBER}, got '0'"),
        *(
            ({"layers": [layer([[1, value]])]}, rf"layers\[0\].weights\[0\]\[1\] {NUMBER}, got {shown}")
            for value, shown in (
                ("x", "'x'"),
                ("2", "'2'"),
                (True, "True"),
                (None, "None"),
                ([1], r"\[1\]"),
                (1e9, "1000000000.0"),
                (math.nan, "nan"),
                (-math.inf, "-inf"),
                (10**400, "10{76}[.]{3}"),
            )
        ),
        ({"training": [1]}, r"training must be an object, got \[1\]"),
        ({"training": 3}, "training must be an object, got 3"),
    ],
)
def test_files_that_are_wrong(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    path = written(tmp_path, **changes)
    with pytest.raises(ValueError, match=f"network '{path}': (?!network).*{message}"):
        parse_policy(f"learned:{path}")


@pytest.mark.parametrize(
    ("value", "shown"),
    [("2", "'2'"), (True, "True"), (np.True_, "(np[.])?True_?"), (10**400, "10{76}[.]{3}"), (1j, "1j")],
)
def test_weights_that_are_no_numbers(value: Any, shown: str) -> None:
    with pytest.raises(ValueError, match=rf"network: weights\[0\]\[0\]\[1\] {NUMBER}, got {shown}"):
        Network(("load", "crowd"), ([[1.0, value]],), ([0.0],))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=rf"network: biases\[0\]\[0\] {NUMBER}, got {shown}"):
        Network(("load", "crowd"), ([[1.0, 2.0]],), ([value],))  # type: ignore[arg-type]


def test_weights_of_every_kind_of_number() -> None:
    network = Network(("load", "crowd"), ([[1, Fraction(1, 2)]],), (np.float32([0.25]),))  # type: ignore[arg-type]
    assert network.vector.tolist() == [0.25, 1.0, 0.5]


@pytest.mark.parametrize("where", ["[", '{"a":', '{"format": "queue-env network", "training": ['])
def test_files_that_are_nested_too_deep(tmp_path: Path, where: str) -> None:
    path = tmp_path / "net.json"
    path.write_text(where * 100_000)
    with pytest.raises(ValueError, match=f"network '{path}': must be a JSON file that is nested less deep"):
        parse_policy(f"learned:{path}")


@pytest.mark.parametrize("depth", [100, 900, 5000])
def test_weights_that_are_nested_too_deep(tmp_path: Path, depth: int) -> None:
    path = written(tmp_path, layers="DEEP")
    deep = "[" * depth + "]" * depth
    path.write_text(path.read_text().replace('"DEEP"', f'[{{"weights": {deep}, "biases": {deep}}}]'))
    with pytest.raises(ValueError, match=f"network '{path}': (layers.0..weights must be|must be a JSON file that is)"):
        parse_policy(f"learned:{path}")


@pytest.mark.parametrize("name", ["learned:", "learned: "])
def test_a_name_without_a_file(name: str) -> None:
    with pytest.raises(ValueError, match=f"policy='{name}' names no file; allowed: learned:FILE.json"):
        parse_policy(name)


def test_files_that_are_not_there_or_no_json(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"network 'none.json': cannot be read: No such file"):
        parse_policy("learned:none.json")
    with pytest.raises(ValueError, match="cannot be read: Is a directory"):
        parse_policy(f"learned:{tmp_path}")
    for content in (b"{", b"\xff\xfe"):
        (tmp_path / "bad.json").write_bytes(content)
        with pytest.raises(ValueError, match="must be a JSON file, but"):
            parse_policy(f"learned:{tmp_path / 'bad.json'}")


# ---- those that come with the package ------------------------------------------------------------


@pytest.mark.parametrize("name", shipped_networks())
def test_those_that_come_with_the_package_run(name: str) -> None:
    policy = parse_policy(name)
    assert policy.label == name
    assert isinstance(policy.user, NetworkPolicy)
    model = scenario(policy.user.training["scenarios"][0])
    assert simulate(model, name, jobs=2000).mean_response < 10 * model.sizes.mean


def test_names_that_none_has() -> None:
    with pytest.raises(
        ValueError, match=r"policy='learned-x' is not known; allowed among learned policies: .*FILE.json"
    ):
        parse_policy("learned-x")


# ---- wherever a policy can be named --------------------------------------------------------------


def test_decisions_are_quick() -> None:
    """A job brings two events, most of which ask the network; a tenth of the speed that is usual is enough here."""
    policy = random_policy(1, (8,))
    simulate("high-load-2", policy, jobs=1000, threads=1)
    began = process_time()
    simulate("high-load-2", policy, jobs=200_000, threads=1)
    assert 200_000 / (process_time() - began) > 100_000


def test_no_network_is_compiled_anew() -> None:
    from queue_env.kernel.anchor import run_anchor

    simulate("high-load-2", random_policy(1), jobs=1000)
    before = len(run_anchor.signatures)  # type: ignore[attr-defined]
    simulate("high-load-2", [random_policy(2, (5, 6), "relu"), "dynasplit"], jobs=1000)
    assert len(run_anchor.signatures) == before  # type: ignore[attr-defined]


@pytest.fixture
def file(tmp_path: Path) -> str:
    """The name of a policy from a file."""
    write_network(tmp_path / "net.json", random_network(4, (3,)), {})
    return f"learned:{tmp_path / 'net.json'}"


@pytest.mark.parametrize("command", ["simulate", "score"])
def test_on_the_command_line(file: str, command: str) -> None:
    done = CliRunner().invoke(
        cli, [command, "light-2", "--policy", file, "--policy", "srpt", "--jobs", "2e4", "--json"]
    )
    assert done.exit_code == 0, done.output
    document = json.loads(done.stdout)
    rows = document["results" if command == "simulate" else "rows"]
    assert {row["policy"] for row in rows} == {file, "srpt"}
    missing = CliRunner().invoke(cli, [command, "light-2", "--policy", "learned:none.json"])
    assert missing.exit_code == 2
    assert missing.stderr.startswith("error: network 'none.json': cannot be read")


def test_on_the_scoreboard(file: str, tmp_path: Path) -> None:
    arguments = [
        "--scenario",
        "light-2",
        "--policy",
        file,
        "--policy",
        "fcfs",
        "--jobs",
        "2e4",
        "--out",
        f"{tmp_path}/b",
    ]
    done = CliRunner().invoke(scoreboard, arguments)
    assert done.exit_code == 0, done.output
    assert file in (tmp_path / "b" / "scoreboard.md").read_text()


def test_tail_curves_do_not_depend_on_threads_and_go_on(file: str, tmp_path: Path) -> None:
    one = small_curve(file, "high-load-2", [10.0, 100.0], threads=1, checkpoint=tmp_path / "curve")
    two = small_curve(file, "high-load-2", [10.0, 100.0], threads=2)
    again = small_curve(file, "high-load-2", [10.0, 100.0], checkpoint=tmp_path / "curve")
    for other in (two, again):
        np.testing.assert_array_equal(other.tail, one.tail)
        np.testing.assert_array_equal(other.high, one.high)
    assert one.policy == file
