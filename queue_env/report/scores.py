"""The tables of scores, and the line above them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from queue_env.report.table import Cell, Table
from queue_env.tail import Interval

if TYPE_CHECKING:
    from queue_env.scenarios import Scenario
    from queue_env.scoring.score import Score, Scores

__all__ = ["scenario_line", "score_headline", "score_tables"]

LEVEL = 0.95


def scenario_line(model: Scenario) -> str:
    """A scenario in one line: its servers, its load, its sizes, and c of the bound where there is one."""
    spec = dict(model.sizes.spec())
    law = [str(spec.pop("law")), *(f"{key}={value:.4g}" for key, value in spec.items() if isinstance(value, float))]
    line = f"{model.name}: {model.servers} server{'s' * (model.servers != 1)}, load {model.load:.3g}"
    line += f", sizes {' '.join(law)}"
    return line if model.c <= 0 or model.patience is not None else f"{line}, c = min(1, spare) = {model.c:.3g}"


def score_headline(model: Scenario, tail_range: tuple[float, float], seed: int) -> str:
    """What was scored, in one line; the range is in mean service times."""
    line = scenario_line(model)
    if model.patience is None:
        line += f"; tail score over {tail_range[0]:g} to {tail_range[1]:g} mean service times"
    return f"{line}; seed {seed}"


def score_tables(scores: Scores, first: str) -> list[Table]:
    """The scores, a row for each policy and best first, and the differences to a policy where there are any."""
    rows = [(row.policy, *_cells(scores, row)) for row in scores]
    scored = [row for row in scores if row.estimate is not None]
    title = "Tail score (lower is better), normalised tail R(t) with t in mean service times, and a plain run"
    impatient = ["abandonment"] if _impatient(scores) else []
    plain = ("mean response", "mean slowdown", "p99.9", *impatient, "P(beats best)")
    columns = ("policy", "score", *_decade_titles(scores), *plain)
    tables = [Table(title, columns, tuple(rows))]
    others = [row.policy for row in scored if row.policy != first]
    if others and any(row.policy == first for row in scored):
        title = f"Difference of the tail score to {first}, on the same streams; less than 0 is better"
        differences = tuple((other, *_difference(scores, other, first)) for other in others)
        tables.append(Table(title, ("policy", "score", "P(better)"), differences, "difference"))
    return tables


def _cells(scores: Scores, row: Score) -> list[Cell]:
    best = scores[0]
    beats = None if row is best or row.estimate is None else scores.difference(row.policy, best.policy)[3]
    decades = [_interval(*ends) for ends in zip(row.normalised_tail, row.tail_low, row.tail_high, strict=True)]
    plain: list[Cell] = [row.plain.interval("mean_response"), row.plain.interval("mean_slowdown")]
    plain.append(float(row.plain.quantile(0.999)))
    if _impatient(scores):
        plain.append(row.plain.interval("abandonment"))
    return [_interval(row.score, row.low, row.high), *decades, *plain, beats]


def _impatient(scores: Scores) -> bool:
    return any(row.plain.abandoned for row in scores)


def _interval(value: float, low: float, high: float) -> Cell:
    return None if math.isnan(value) else Interval(float(value), float(low), float(high), LEVEL)


def _decade_titles(scores: Scores) -> list[str]:
    row = scores[0]
    unit = row.plain.sizes.mean
    return [f"R({t / unit:g})" for t in row.t.tolist()]


def _difference(scores: Scores, policy: str, first: str) -> tuple[Cell, Cell]:
    value, low, high, better = scores.difference(policy, first)
    return Interval(value, low, high, LEVEL), better
