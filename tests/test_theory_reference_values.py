"""Theory against the published and independently computed numbers of ../shared/reference/values.csv.

Only rows with a closed form are used: LRPT is no policy of ours, and M/G/1 tails have none; for M/G/n under
SRPT the super-server bound is checked. The accuracy asked for is that of the row, or a comment says why not.
"""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest
from _pytest.mark import ParameterSet

from queue_env import theory
from queue_env.distributions import Exponential, Hyperexponential, Uniform

PATH = Path(__file__).parents[2] / "shared" / "reference" / "values.csv"

if not PATH.exists():
    pytest.skip(f"reference values are absent: {PATH}", allow_module_level=True)

Row = dict[str, str]

with PATH.open(newline="", encoding="utf-8") as file:
    ROWS: list[Row] = list(csv.DictReader(file))

POLICIES = {"FCFS": "fcfs", "SJF": "sjf", "PSJF": "psjf", "SRPT": "srpt", "LAS/FB": "las"}

# The table states ~1e-5 for SRPT and ~1e-6 for the rest, but at load 0.99 is off by 2.6e-5 and (PSJF) 1.4e-6.
QUOTED = {"srpt": 5e-5, "psjf": 3e-6, "las": 1e-6}

# Not what the formula gives, as the table itself notes.
MISPRINTED = {("sjf", 0.9), ("psjf", 0.9), ("srpt", 0.9)}


def rows(model: str, kind: str, parameters: str = "") -> list[ParameterSet]:
    """The rows whose model matches a pattern and whose parameters contain another, with readable ids."""
    return [
        pytest.param(row, id=f"{row['model']}-{row['parameters']}-{row['metric']}")
        for row in ROWS
        if re.fullmatch(model, row["model"])
        and row["kind"].startswith(kind)
        and re.search(parameters, row["parameters"])
    ]


def numbers(row: Row) -> dict[str, float]:
    """The `name=value` pairs among the parameters of a row."""
    return {key: float(value) for key, value in re.findall(r"(\w+)=([\d.]+)", row["parameters"])}


def printed_half_unit(text: str) -> float:
    """Half a unit of the last printed digit."""
    return 0.5 * 10.0 ** -len(text.partition(".")[2])


@pytest.mark.parametrize(
    ("model", "kind", "least"),
    [
        ("M/M/1 (SRPT|PSJF|LAS/FB)", "exact", 24),
        ("M/M/1 (FCFS|SJF|PSJF|SRPT)", "published", 20),
        ("M/G/1 (SRPT|PSJF|LAS/FB)", "exact", 6),
        (r"M/M/n\+M FCFS", "exact", 40),
        ("M/M/n", "exact", 21),
    ],
)
def test_the_table_has_the_rows_that_these_tests_read(model: str, kind: str, least: int) -> None:
    assert len(rows(model, kind)) >= least


@pytest.mark.parametrize("row", rows("M/M/1 (SRPT|PSJF|LAS/FB)", "exact"))
def test_single_server_quadrature(row: Row) -> None:
    policy = POLICIES[row["model"].split()[1]]
    value = theory.mean_response(policy, numbers(row)["rho"], Exponential(1.0))
    assert value == pytest.approx(float(row["value"]), rel=QUOTED[policy])


@pytest.mark.parametrize("row", rows("M/M/1 (FCFS|SJF|PSJF|SRPT)", "published"))
def test_single_server_table(row: Row) -> None:
    policy, load = POLICIES[row["model"].split()[1]], numbers(row)["rho"]
    value = theory.mean_response(policy, load, Exponential(1.0))
    agrees = value == pytest.approx(float(row["value"]), abs=printed_half_unit(row["value"]) * 1.001)
    assert agrees == ((policy, load) not in MISPRINTED)


def test_row_marked_as_wrong_in_the_table_has_the_exact_values_of_its_note() -> None:
    """The note's own value for SJF (4.1968) is 1.1e-4 too low, the others are right to four decimals."""
    notes = {row["size_or_note"] for row in ROWS if "disagrees with exact" in row["size_or_note"]}
    assert len(notes) == 1
    exact = [float(value) for value in re.findall(r"\d\.\d{4}", notes.pop())]
    values = [theory.mean_response(policy, 0.9, Exponential(1.0)) for policy in ("sjf", "psjf", "srpt")]
    assert values[0] == pytest.approx(exact[0], abs=1.5e-4)
    assert values[1:] == pytest.approx(exact[1:], abs=5.1e-5)


@pytest.mark.parametrize("row", rows("M/G/1 (SRPT|PSJF|LAS/FB)", "exact"))
def test_two_exponential_classes(row: Row) -> None:
    policy = POLICIES[row["model"].split()[1]]
    assert row["parameters"] == "2 exp classes lambda=(.2;.3) mu=(1;2)"
    mixture = Hyperexponential((0.4, 0.6), (1.0, 0.5))
    own = Exponential(1.0 if row["metric"].endswith("1") else 0.5)
    response = theory.CONDITIONAL_RESPONSE[policy]
    value = theory.expectation(own, lambda x: response(0.5, mixture, x))
    assert value == pytest.approx(float(row["value"]), rel=1e-5)


@pytest.mark.parametrize("row", rows(r"M/M/n\+M FCFS", "exact"))
def test_erlang_a(row: Row) -> None:
    given = numbers(row)
    law = theory.erlang_a(given["lambda"], given["mu"], int(given["n"]), given["theta"])
    value = {
        "P(ab)": law.abandonment,
        "E[Q]": law.mean_queue,
        "E[W|served]": law.mean_waiting_served,
        "E[W|abandoned]": law.mean_waiting_abandoned,
        "P(W=0)": law.no_wait,
    }[row["metric"]]
    assert value == pytest.approx(float(row["value"]), abs=printed_half_unit(row["value"]) * 1.001)


@pytest.mark.parametrize("row", rows("M/M/n", "exact"))
def test_erlang_b_and_c(row: Row) -> None:
    given = numbers(row)
    servers, load = int(given["n"]), given["A"]
    value = {
        "ErlangB": lambda: theory.erlang_b(servers, load),
        "ErlangC=P(W>0)": lambda: theory.erlang_c(servers, load),
        "E[T] FCFS (also PS-n)": lambda: theory.mmn_mean_response(load, 1.0, servers),
    }[row["metric"]]()
    assert value == pytest.approx(float(row["value"]), rel=1e-8)


@pytest.mark.parametrize("row", rows(r"M/M/n\+GI FCFS", "sim", "patience Exp"))
def test_erlang_a_against_simulation(row: Row) -> None:
    """Standard error of P(ab) at most 0.0013, of E[W] = P(ab)/θ 5 times that; 4 of them: false alarm 6e-5."""
    given = numbers(row)
    servers, load = int(given["n"]), given["rho"]
    law = theory.erlang_a(load * servers / 3.0, 1.0 / 3.0, servers, 1.0 / 5.0)
    if row["metric"] == "P(ab)":
        assert law.abandonment == pytest.approx(float(row["value"]), abs=4 * 0.0013)
    else:
        assert law.mean_waiting == pytest.approx(float(row["value"]), abs=4 * 5 * 0.0013)


def test_capacitated_processor_sharing_has_the_delay_probability_of_erlang_c() -> None:
    below = [float(row["value"]) for row in ROWS if "PS R=3" in row["model"] and row["metric"][-2] in "012"]
    assert len(below) == 3
    assert theory.erlang_c(3, 10.0 / 12.0) == pytest.approx(1.0 - sum(below), rel=1e-12)


@pytest.mark.parametrize("row", rows("M/G/2 SRPT-2", "sim", r"S=(Exp\(1\)|U\(0;2\))"))
def test_two_servers_under_srpt_are_above_the_super_server_and_near_it_in_heavy_traffic(row: Row) -> None:
    """Servers of speed 1/2 make the super server one of speed 1; 1 % covers the noise of the simulation."""
    law = Exponential(1.0) if "Exp" in row["parameters"] else Uniform(0.0, 2.0)
    load = numbers(row)["rho"]
    ratio = float(row["value"]) / theory.mean_response("srpt", load, law)
    assert ratio > 1.0 - 0.01
    if load >= 0.98:
        assert ratio < 1.1


@pytest.mark.parametrize("row", rows("M/G/4 SRPT-4", "sim"))
def test_four_servers_under_srpt_are_above_the_super_server(row: Row) -> None:
    law = Hyperexponential((0.5, 0.5), (0.5, 1.5))
    bound = theory.mean_response("srpt", numbers(row)["rho"], law)
    assert max(bound, 4.0 * law.mean) < float(row["value"])
