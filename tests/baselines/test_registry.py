"""The catalogue of baselines: complete, and true to what the policies do."""

from __future__ import annotations

import json

import numpy as np
import pytest
from numpy.typing import NDArray
from typer.testing import CliRunner

from baselines import REGISTRY, learned_policies, policies
from baselines.__main__ import app
from queue_env import Workload
from queue_env.distributions import law
from queue_env.plan import reference_policies
from queue_env.rules import POLICIES, parse_policy
from queue_env.scenarios import SCENARIOS, scenario
from queue_env.settings import set_up
from queue_env.simulator import simulate

JOBS = 40
SERVERS = 2
GIVEN = {"thresh-split": "d=1", "dynasplit": "delta=0.4", "loss-priority": "tau=1", "two-class": "tau=1"}
"""In place of defaults, which depend on the sizes of the whole workload."""

EXPONENTIAL, PARETO = (law(spec | {"mean": 1.0}) for spec in ({"law": "exponential"}, {"law": "pareto", "alpha": 1.5}))


def events(name: str, times: NDArray[np.float64], sizes: NDArray[np.float64]) -> NDArray[np.float64]:
    """When each job starts and departs, shape (2, jobs); inf for never."""
    label = ":".join(filter(None, (name, GIVEN.get(name))))
    records = simulate(Workload(times, sizes), label, servers=SERVERS, records=True).records
    assert records is not None
    return np.nan_to_num(np.stack([records["start_time"], records["departure_time"]]), nan=np.inf)


def resolved(name: str, load: float, sizes_law: object = EXPONENTIAL) -> list[float]:
    """The numbers the kernel gets for a policy with its defaults."""
    return set_up(parse_policy(name), SERVERS, SERVERS * (1 - load), law(sizes_law)).parameters.tolist()  # type: ignore[arg-type]


def test_there_is_one_baseline_for_each_policy() -> None:
    assert set(REGISTRY) == set(POLICIES)
    for name, baseline in REGISTRY.items():
        assert baseline.name == name
        assert baseline.policy is POLICIES[name]
        assert set(baseline.tuning) <= {parameter.name for parameter in baseline.policy.parameters}


def test_only_what_nothing_is_proven_of_has_no_source() -> None:
    assert {name for name, baseline in REGISTRY.items() if not baseline.source} == {"backlog-split"}
    assert REGISTRY["backlog-split"].guarantee == "nothing is proven"


@pytest.mark.parametrize("name", POLICIES)
def test_policies_foresee_sizes_only_where_they_must_know_them(name: str) -> None:
    """A longer job changes nothing before the time it would have left, but for policies that know its size."""
    rng = np.random.default_rng(3)
    times, sizes = np.cumsum(rng.exponential(0.6, JOBS)), rng.exponential(1.0, JOBS)
    before = events(name, times, sizes)
    foreseen = False
    for job in range(0, JOBS, 2):
        longer = sizes.copy()
        longer[job] *= 5
        end = before[1, job]
        after = events(name, times, longer)
        foreseen |= not np.allclose(np.minimum(after, end), np.minimum(before, end), rtol=1e-12)
    assert foreseen == ("sizes" in REGISTRY[name].information)


@pytest.mark.parametrize("name", POLICIES)
def test_defaults_use_the_load_and_the_law_only_where_they_must_be_known(name: str) -> None:
    load = 1.5 if name in ("loss-priority", "two-class") else 0.8
    information = REGISTRY[name].information
    assert (resolved(name, load) != resolved(name, load, PARETO)) == ("law" in information)
    takes_spare = "delta" in {parameter.name for parameter in POLICIES[name].parameters}
    assert (takes_spare or resolved(name, load) != resolved(name, load + 0.1)) == ("load" in information)


@pytest.mark.parametrize("name", SCENARIOS)
def test_policies_of_a_scenario_are_those_that_can_run_with_srpt_first(name: str) -> None:
    labels = policies(name)
    assert labels[0] == "srpt"
    assert sorted(labels) == sorted(reference_policies(name))
    assert ("dynasplit" in labels, "loss-priority" in labels) == (scenario(name).load < 1, scenario(name).load > 1)


def test_policies_of_a_workload() -> None:
    workload = Workload([0.0, 1.0, 2.0], [1.0, 1.0, 1.0])
    assert policies(workload, servers=1)[0] == "srpt"
    assert "thresh-split" in policies(workload, servers=2)
    assert "thresh-split" not in policies(workload, servers=1)


def test_sources_that_are_wrong_are_refused() -> None:
    with pytest.raises(ValueError, match="name must be one of high-load-2"):
        policies("high-load-3")
    with pytest.raises(ValueError, match="servers must be given with a workload, got None"):
        policies(Workload([0.0], [1.0]))


def test_catalogue_is_printed() -> None:
    found = CliRunner().invoke(app, [], env={"COLUMNS": "200", "NO_COLOR": "1"})
    assert found.exit_code == 0
    for name, baseline in REGISTRY.items():
        assert found.stdout.count(f"\n  {name} ") == 2
        assert baseline.policy.law in found.stdout
    for name, learned in learned_policies().items():
        assert f"\n  {name} " in found.stdout
        assert set(learned.scenarios) <= set(SCENARIOS)


def test_catalogue_is_json() -> None:
    found = CliRunner().invoke(app, ["--json"])
    document = json.loads(found.stdout, parse_constant=pytest.fail)
    assert document["command"] == "baselines"
    assert [entry["name"] for entry in document["baselines"]] == list(REGISTRY)
    for entry in document["baselines"]:
        info = POLICIES[entry["name"]]
        assert (entry["law"], entry["law_source"]) == (info.law, info.source)
        assert [parameter["name"] for parameter in entry["parameters"]] == [p.name for p in info.parameters]
        assert entry["guarantee"] == REGISTRY[entry["name"]].guarantee
    assert [entry["name"] for entry in document["learned"]] == list(learned_policies())


def test_learned_policies_say_how_they_were_found() -> None:
    assert len(learned_policies()) >= 2
    for name, learned in learned_policies().items():
        assert parse_policy(name).label == name
        assert learned.widths[0] == len(learned.features)
        assert learned.command.startswith("python -m train.es ")
        assert all(f"--scenario {place}" in learned.command for place in learned.scenarios)
