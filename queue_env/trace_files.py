"""The file formats of traces: the cells of the columns that are wanted, and the numbers in them."""

from __future__ import annotations

import csv
import gzip
import re
import warnings
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, TextIO, TypeAlias

import numpy as np
from numpy.typing import NDArray

from queue_env.distributions.checks import refuse

__all__ = ["SWF_COLUMNS", "Format", "Table", "trace_format"]

FloatArray: TypeAlias = NDArray[np.float64]
Cells: TypeAlias = list[str] | NDArray[Any]

SWF_COLUMNS = (
    *("job_number", "submit_time", "wait_time", "run_time", "allocated_processors", "average_cpu_time"),
    *("used_memory", "requested_processors", "requested_time", "requested_memory", "status", "user_id"),
    *("group_id", "executable", "queue", "partition", "preceding_job", "think_time"),
)

_TIMESTAMP = re.compile(r"(?:19|20|21)\d\d-\d\d-\d\d(?:[ T]\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(?:Z|[+-]\d\d:?\d\d)?)?")


@dataclass(frozen=True)
class Table:
    """The wanted columns of a file.

    Attributes:
        path: the file.
        columns: the cells of each column, as they are written in the file.
        rows: number of rows.
        lines: line of each row, from 1; None where the file is not a text.
        unknown: the number that stands for a missing value, if there is one.
    """

    path: Path
    columns: Mapping[str, Cells]
    rows: int
    lines: list[int] | None = None
    unknown: float | None = None

    def error(self, row: int, column: str, allowed: str, value: object) -> ValueError:
        """The error that names the place of a value, and what is allowed there."""
        line = "" if self.lines is None else f" (line {self.lines[row]})"
        place = f"{self.path}: row {row + 1}{line}, column {column!r}"
        return ValueError(f"{place}: must be {allowed}, got {str(value)!r}")

    def numbers(self, column: str, timestamps: bool) -> FloatArray:
        """The values of a column, NaN where a cell is no number (nor, if they are allowed, a timestamp)."""
        cells = self.columns[column]
        if timestamps and _are_timestamps(cells):
            return _seconds(cells)
        values = _floats(cells)
        return values if self.unknown is None else np.where(values == self.unknown, np.nan, values)


class Format(NamedTuple):
    """How files of a kind are read: all names of columns, then some of the columns, up to so many rows."""

    header: Callable[[Path], Sequence[str]]
    table: Callable[[Path, Sequence[str], Sequence[str], int | None], Table]


def trace_format(path: Path) -> Format:
    """The format that the suffix of a file names; a ValueError that lists them if it names none."""
    for suffix, source in _FORMATS.items():
        if path.name.lower().endswith(suffix):
            return source
    refuse("load_trace", "path", f"the name of a file that ends in one of {', '.join(_FORMATS)}", str(path))


def _csv_rows(file: TextIO) -> Iterator[tuple[int, list[str]]]:
    reader = csv.reader(file, strict=True)
    for cells in reader:
        if cells:
            yield reader.line_num, cells


def _swf_rows(file: TextIO) -> Iterator[tuple[int, list[str]]]:
    for line, text in enumerate(file, start=1):
        cells = text.split()
        if cells and not cells[0].startswith(";"):
            yield line, cells


def _text_rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    """The line number and the cells of each row that is not blank, header included."""
    open_text: Callable[..., TextIO] = gzip.open if path.suffix.lower() == ".gz" else open
    split = _swf_rows if trace_format(path) is _SWF else _csv_rows
    try:
        with open_text(path, "rt", encoding="utf-8-sig", newline="") as file:
            yield from split(file)
    except (csv.Error, UnicodeDecodeError, EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise ValueError(f"{path}: cannot be read: {error}") from error


def _csv_header(path: Path) -> Sequence[str]:
    for _, cells in _text_rows(path):
        return [cell.strip() for cell in cells]
    raise ValueError(f"{path}: is empty; the first line must name the columns")


def _csv_table(path: Path, header: Sequence[str], wanted: Sequence[str], limit: int | None) -> Table:
    return _text_table(path, islice(_text_rows(path), 1, None), header, wanted, limit)


def _swf_table(path: Path, header: Sequence[str], wanted: Sequence[str], limit: int | None) -> Table:
    return _text_table(path, _text_rows(path), header, wanted, limit, unknown=-1.0)


def _text_table(
    path: Path,
    rows: Iterable[tuple[int, list[str]]],
    header: Sequence[str],
    wanted: Sequence[str],
    limit: int | None,
    unknown: float | None = None,
) -> Table:
    lines: list[int] = []
    columns: dict[str, list[str]] = {name: [] for name in wanted}
    picks = [(columns[name].append, header.index(name)) for name in wanted]
    for line, cells in islice(rows, limit):
        lines.append(line)
        if len(cells) != len(header):
            raise ValueError(f"{path}: row {len(lines)} (line {line}) has {len(cells)} cells: must have {len(header)}")
        for append, index in picks:
            append(cells[index])
    return Table(path, columns, len(lines), lines, unknown)


def _parquet_file(path: Path) -> Any:
    try:
        import pyarrow.parquet
    except ImportError as error:
        raise ImportError(f"{path}: reading .parquet needs pyarrow: install queue-env[parquet]") from error
    try:
        return pyarrow.parquet.ParquetFile(path)
    except ValueError as error:
        raise ValueError(f"{path}: cannot be read: {error}") from error


def _parquet_header(path: Path) -> Sequence[str]:
    with _parquet_file(path) as file:
        return list(file.schema_arrow.names)


def _parquet_table(path: Path, header: Sequence[str], wanted: Sequence[str], limit: int | None) -> Table:
    with _parquet_file(path) as file:
        table = file.read(columns=list(wanted)).slice(0, limit)
    return Table(path, {name: _parquet_cells(table.column(name)) for name in wanted}, table.num_rows)


def _parquet_cells(column: Any) -> Cells:
    """Timestamps as datetime64[ns] and numbers as float64, nulls as NaT and NaN; all else as text."""
    import pyarrow as pa

    if pa.types.is_timestamp(column.type) or pa.types.is_date(column.type):
        return np.asarray(column.cast(pa.timestamp("ns")).to_numpy())
    numeric = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal)
    if any(is_kind(column.type) for is_kind in numeric):
        return np.asarray(column.cast(pa.float64(), safe=False).to_numpy())
    return [str(cell) for cell in column.to_pylist()]


_SWF = Format(lambda path: SWF_COLUMNS, _swf_table)
_CSV = Format(_csv_header, _csv_table)
_FORMATS = {
    ".csv": _CSV,
    ".csv.gz": _CSV,
    ".swf": _SWF,
    ".swf.gz": _SWF,
    ".parquet": Format(_parquet_header, _parquet_table),
}


def _float(cell: str) -> float:
    try:
        return float(cell)
    except ValueError:
        return np.nan


def _floats(cells: Cells) -> FloatArray:
    if isinstance(cells, np.ndarray):
        return cells if cells.dtype.kind == "f" else np.full(len(cells), np.nan)
    try:
        return np.fromiter(map(float, cells), np.float64, len(cells))
    except ValueError:
        return np.fromiter(map(_float, cells), np.float64, len(cells))


def _are_timestamps(cells: Cells) -> bool:
    """Whether the first cell that can be read at all is a timestamp."""
    if isinstance(cells, np.ndarray):
        return cells.dtype.kind == "M"
    for cell in cells:
        if _TIMESTAMP.fullmatch(cell.strip()):
            return True
        if not np.isnan(_float(cell)):
            return False
    return False


def _seconds(cells: Cells) -> FloatArray:
    """Seconds since the earliest timestamp, NaN where there is none."""
    moments = cells if isinstance(cells, np.ndarray) else _moments(cells)
    missing = np.isnat(moments)
    nanoseconds = moments.astype(np.int64)
    elapsed = nanoseconds - nanoseconds[~missing].min(initial=np.iinfo(np.int64).max)
    return np.where(missing, np.nan, elapsed / 1e9)


def _moments(cells: list[str]) -> NDArray[np.datetime64]:
    texts = [cell.strip() for cell in cells]
    texts = [text if _TIMESTAMP.fullmatch(text) else "NaT" for text in texts]
    with warnings.catch_warnings():
        # NumPy warns that it turns offsets into UTC, which is what is wanted.
        warnings.filterwarnings("ignore", "no explicit representation of timezones", UserWarning)
        try:
            return np.array(texts, dtype="datetime64[ns]")
        except ValueError:
            return np.array([_moment(text) for text in texts])


def _moment(text: str) -> np.datetime64:
    try:
        return np.datetime64(text, "ns")
    except ValueError:
        return np.datetime64("NaT", "ns")
