"""Read a workload from a file: CSV, Parquet, or the Standard Workload Format of batch clusters."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from queue_env.distributions.checks import positive, refuse
from queue_env.trace_files import SWF_COLUMNS, Table, trace_format
from queue_env.workload import RULES, Workload, check_servers, first_decrease

__all__ = ["AZURE_COLUMNS", "AZURE_SIZE", "load_trace"]

FloatArray: TypeAlias = NDArray[np.float64]

AZURE_COLUMNS = ("TIMESTAMP", "ContextTokens", "GeneratedTokens")

# Seconds on one server. A convention with the proportions of language models, not a measurement: tokens are
# read in parallel and written one by one, so a token written costs a hundred times as much as a token read.
AZURE_SIZE = "0.1 + 0.0002*ContextTokens + 0.02*GeneratedTokens"

_NUMBER = r"(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
_TERM = re.compile(
    rf"\s*(?P<sign>[+-]?)\s*(?:"
    rf"(?:(?P<factor>{_NUMBER})\s*\*\s*)?(?P<column>[^\W\d][\w.]*)|(?P<number>{_NUMBER}))\s*"
)


def load_trace(
    path: str | os.PathLike[str],
    *,
    arrival: str | None = None,
    size: str | None = None,
    patience: str | None = None,
    load: float | None = None,
    servers: int | None = None,
    limit: int | None = None,
    sort: bool = False,
    skip_invalid: bool = False,
) -> Workload:
    """Read a workload from a trace.

    Args:
        path: a file whose name ends in .csv or .swf (or either with .gz), or .parquet (needs the extra
            `parquet`).
        arrival: column of the arrival times: numbers (seconds, kept as they are) or timestamps of the years
            1900 to 2199, such as "2023-11-16 18:15:46.6805900" (UTC unless they name an offset), which become
            seconds since the earliest of the file and keep every digit down to 1 ns. Default: `submit_time`
            in .swf, `TIMESTAMP` where the columns are `AZURE_COLUMNS`, else `arrival_time` or `arrival`.
        size: sum of [number*]column and numbers, such as "0.02*tokens + 0.1". Default: `run_time` in .swf,
            `AZURE_SIZE` where the columns are `AZURE_COLUMNS`, else `size`.
        patience: sum of the same form; by default all jobs wait for ever.
        load: stretch the arrival times to this load on `servers` servers; both are given or neither.
        servers: see `load`.
        limit: read only so many rows, from the top.
        sort: sort the jobs by arrival (ties stay in order); otherwise an unsorted trace is refused.
        skip_invalid: leave out the rows with a cell that is no number, or is -1 ("unknown") in .swf, and
            those with values that a `Workload` refuses; otherwise they are an error.

    Raises:
        ValueError: names the file and, where there is one, the row (from 1, without the header), its line in
            the file, and the column.
        ImportError: a .parquet file without pyarrow.

    Source of the .swf columns: S. Chapin et al., "Benchmarks and standards for the evaluation of parallel job
    schedulers", JSSPP 1999; `SWF_COLUMNS` has their names, in the order of the file.
    """
    if (load is None) != (servers is None):
        refuse("load_trace", "load and servers", "both given or both None", (load, servers))
    if load is not None and servers is not None:
        positive("load_trace", "load", load)
        check_servers(servers)
    if limit is not None and limit < 1:
        refuse("load_trace", "limit", ">= 1 or None", limit)
    path = Path(path)
    source = trace_format(path)
    header = source.header(path)
    formulas = _formulas(path, header, arrival, size, patience)
    wanted = list(dict.fromkeys(column for formula in formulas.values() for column in formula.factors))
    table = source.table(path, header, wanted, limit)
    if table.rows == 0:
        raise ValueError(f"{path}: has no rows of data")
    workload = Workload(**_columns(table, formulas, sort, skip_invalid))
    return workload if load is None or servers is None else workload.rescaled(load, servers)


@dataclass(frozen=True)
class _Formula:
    """A constant plus a sum of factors times columns."""

    text: str
    constant: float
    factors: dict[str, float]

    def values(self, table: Table, *, timestamps: bool, skip_invalid: bool) -> FloatArray:
        """The value in each row; NaN where a cell is no number, which is an error unless it is skipped."""
        total = np.full(table.rows, self.constant)
        for column, factor in self.factors.items():
            numbers = table.numbers(column, timestamps)
            bad = np.flatnonzero(np.isnan(numbers))
            if bad.size and not skip_invalid:
                allowed = f"a {'known ' if table.unknown else ''}number{' or a timestamp' * timestamps}"
                raise table.error(int(bad[0]), column, allowed, table.columns[column][bad[0]])
            with np.errstate(over="ignore", invalid="ignore"):  # the rules on values refuse what comes of it
                total += factor * numbers
        return total


def _columns(table: Table, formulas: Mapping[str, _Formula], sort: bool, skip_invalid: bool) -> dict[str, FloatArray]:
    """The arguments of the workload; every error names the row of the file."""
    columns = {
        name: formula.values(table, timestamps=name == "arrival_times", skip_invalid=skip_invalid)
        for name, formula in formulas.items()
    }
    valid = np.ones(table.rows, dtype=np.bool_)
    for name, values in columns.items():
        allowed = RULES[name].holds(values)
        if not skip_invalid and not allowed.all():
            row = int(np.argmin(allowed))
            raise table.error(row, formulas[name].text, RULES[name].allowed, values[row])
        valid &= allowed
    rows = np.flatnonzero(valid)
    if rows.size == 0:
        raise ValueError(f"{table.path}: none of the {table.rows} rows is valid")
    if sort:
        rows = rows[np.argsort(columns["arrival_times"][rows], kind="stable")]
    _check_order(table, formulas["arrival_times"].text, rows, columns["arrival_times"])
    return {name: values[rows] for name, values in columns.items()}


def _check_order(table: Table, column: str, rows: NDArray[np.intp], arrival_times: FloatArray) -> None:
    late = first_decrease(arrival_times[rows])
    if late is not None:
        before, value = (table.columns[column][row] for row in rows[late - 1 : late + 1])
        raise table.error(int(rows[late]), column, f"at least the {before} before it, or use sort=True", value)


def _formulas(
    path: Path, header: Sequence[str], arrival: str | None, size: str | None, patience: str | None
) -> dict[str, _Formula]:
    """What each argument of the workload is computed from; by default by the names of the columns."""
    known = f"the columns of {path} are {', '.join(header)}"
    default_arrival, default_size = _defaults(header)
    arrival = default_arrival if arrival is None else arrival
    size = default_size if size is None else size
    if arrival is None or arrival not in header:
        refuse("load_trace", "arrival", f"the column of the arrival times ({known})", arrival)
    if size is None:
        refuse("load_trace", "size", f"given where there is no column 'size' ({known})", size)
    formulas = {
        "arrival_times": _Formula(arrival, 0.0, {arrival: 1.0}),
        "sizes": _parse("size", size, header),
    }
    if patience is not None:
        formulas["patience"] = _parse("patience", patience, header)
    for name, formula in formulas.items():
        for column in formula.factors:
            if header.count(column) != 1:
                refuse("load_trace", name, f"computed from columns that are there once ({known})", column)
    return formulas


def _defaults(header: Sequence[str]) -> tuple[str | None, str | None]:
    if tuple(header) == SWF_COLUMNS:
        return "submit_time", "run_time"
    if tuple(header) == AZURE_COLUMNS:
        return "TIMESTAMP", AZURE_SIZE
    arrival = next((name for name in ("arrival_time", "arrival") if name in header), None)
    return arrival, "size" if "size" in header else None


def _parse(argument: str, text: str, header: Sequence[str]) -> _Formula:
    """Read a sum of [number*]column and numbers; a column's whole name may hold any characters."""
    if text in header:
        return _Formula(text, 0.0, {text: 1.0})
    constant, factors, position = 0.0, dict[str, float](), 0
    while position < len(text) or not position:
        term = _TERM.match(text, position)
        if term is None or (position > 0 and not term["sign"]):
            allowed = "a sum of [number*]column and numbers, such as '0.02*tokens + 0.1'"
            refuse("load_trace", argument, f"{allowed} (it is not from {text[position:]!r} on)", text)
        factor = float(term["factor"] or term["number"] or 1) * (-1 if term["sign"] == "-" else 1)
        if term["column"]:
            factors[term["column"]] = factors.get(term["column"], 0.0) + factor
        else:
            constant += factor
        position = term.end()
    return _Formula(text, constant, factors)
