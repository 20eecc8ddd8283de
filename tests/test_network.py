"""Networks as policies of the kernel: against the exact simulator, by themselves, and wherever one can be named."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from pathlib import Path
from time import process_time

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
