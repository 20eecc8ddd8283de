"""The simulator against the published and independently computed numbers of ../shared/reference/values.csv.

Intervals are of 99.9 % (see `tests.intervals`), about 200 of them. Against a number that was itself simulated the
interval is widened as if that run had had the same variance for each job. Not used: LRPT, which is no policy of
ours, tails beyond what a run of this length can see, and loads above 0.95 where an exact value is known.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np
import pytest
from _pytest.mark import ParameterSet
from numpy.typing import NDArray

from queue_env import Comparison, Law, Workload, simulate
from queue_env.distributions import law
from queue_env.tail import Interval
from tests.intervals import LEVEL, check, check_interval, mean_over, queue, records, run
from tests.test_theory_reference_values import POLICIES, ROWS, Row, numbers, printed_half_unit, rows

EXPONENTIAL = law({"law": "exponential", "mean": 1.0})
SIZES = {
    "Exp(1)": EXPONENTIAL,
    "U(0;2)": law({"law": "uniform", "low": 0.0, "high": 2.0}),
    "0.5 Exp rate2 + 0.5 Exp rate2/3": law(
        {"law": "hyperexponential", "probabilities": [0.5, 0.5], "means": [0.5, 1.5]}
    ),
    "0.8 Exp mean0.5 + 0.2 Exp mean3": law(
        {"law": "hyperexponential", "probabilities": [0.8, 0.2], "means": [0.5, 3.0]}
    ),
}


def sizes_of(row: Row) -> Law:
    """The size law among the parameters of a row."""
    return SIZES[row["parameters"].removeprefix("S=").split(";  ")[0].split("; rho")[0].split("; lambda")[0]]


def check_simulated(found: Interval, jobs: float, row: Row, published: float, published_jobs: float) -> None:
    """Check a simulated number against a published one that was simulated too."""
    slack = found.half_width * math.sqrt(1.0 + jobs / published_jobs)
    assert abs(found.value - published) <= slack + printed_half_unit(row["value"]), f"{found}, {published}"


# ---- SRPT on several servers ------------------------------------------------------------------------------


@cache
def srpt(servers: int, load: float, name: str) -> Interval:
    jobs = many_jobs(load)
    result = run(queue(SIZES[name], load, servers), ["srpt"], jobs, seed=1)["srpt"]
    return result.interval("mean_response", LEVEL)


def many_jobs(load: float) -> int:
    return 1_000_000 if load < 0.85 else 2_000_000 if load < 0.96 else 8_000_000


@pytest.mark.parametrize("row", rows("M/G/2 SRPT-2|M/G/4 SRPT-4", "sim", "S=(Exp|U|0.5 Exp)"))
def test_srpt_on_several_servers(row: Row) -> None:
    """Servers there have speed 1/n, so that times are n times ours."""
    servers, load = int(row["model"][4]), numbers(row)["rho"]
    name = row["parameters"].removeprefix("S=").split("; rho")[0]
    found = srpt(servers, load, name)
    assert found.half_width < (0.03 if load < 0.97 else 0.15) * found.value
    published_jobs = float(row["size_or_note"].split()[0])
    check_simulated(found, many_jobs(load), row, float(row["value"]) / servers, published_jobs)
