"""Tables and the figure, on results whose tails are known in closed form."""

from __future__ import annotations

import csv
import io
import math
import sys
from pathlib import Path

import numpy as np
import pytest
from made_results import JOBS, ROWS, made_comparison, made_result
from matplotlib.collections import PolyCollection
from rich.console import Console

from queue_env.comparison import Comparison
from queue_env.distributions import law
from queue_env.report import (
    Table,
    atomic_file,
    csv_text,
    difference_table,
    headline,
    markdown,
    paired_differences,
    require_matplotlib,
    result_tables,
    rich_table,
    speed,
    tail_figure,
)
from queue_env.tail import Interval

TABLE = Table(
    "Times [s]",
    ("policy", "mean", "max"),
    (("srpt", Interval(1.23456, 1.2, 1.26912, 0.95), 52722.6), ("a|b", None, 0.5)),
)
TRACE = {"scenario": None, "seed": None}


def column(table: Table, title: str) -> list[object]:
    return [row[table.columns.index(title)] for row in table.rows]


def test_markdown_is_a_github_table_under_its_title() -> None:
    expected = (
        "**Times [s]**\n\n"
        "| policy | mean | max |\n"
        "| --- | --- | --- |\n"
        "| srpt | 1.235 ± 0.035 | 52,723 |\n"
        "| a\\|b |  | 0.5 |\n"
    )
    assert markdown(TABLE) == expected


def test_terminal_shows_title_with_brackets_and_all_cells() -> None:
    console = Console(width=100, record=True, file=io.StringIO())
    console.print(rich_table(TABLE))
    lines = [line.split() for line in console.export_text().splitlines() if line.strip()]
    assert lines[0] == ["Times", "[s]"]
    assert lines[1] == ["policy", "mean", "max"]
    assert lines[3:] == [["srpt", "1.235", "±", "0.035", "52,723"], ["a|b", "0.5"]]


def test_narrow_terminals_cut_no_digit() -> None:
    console = Console(width=24, record=True, file=io.StringIO())
    console.print(rich_table(TABLE))
    shown = "".join(console.export_text().split())
    assert "…" not in shown
    assert "1.235" in shown
    assert "0.035" in shown


def test_csv_has_three_columns_for_an_interval_and_joins_tables_by_name() -> None:
    other = Table("More", ("policy", "max"), (("a|b", 7.0),), group="slowdown")
    expected = "policy,mean,mean low,mean high,max,slowdown max\nsrpt,1.23456,1.2,1.26912,52722.6,\na|b,,,,0.5,7.0\n"
    assert csv_text([TABLE, other]) == expected


@pytest.mark.parametrize(
    ("value", "half_width", "shown"),
    [
        (2.34567, 0.0123, "2.346 ± 0.012"),
        (0.5, 0.2, "0.50 ± 0.20"),
        (450.4, 879.6, "450 ± 880"),
        (1495.2, 31.4, "1,495 ± 31"),
        (3e9, 2.5e8, "3e+09 ± 2.5e+08"),
        (1.0, 1.3e-14, "1"),
        (1.5, math.nan, "1.5"),
        (-0.728, 0.01, "-0.728 ± 0.010"),
    ],
)
def test_intervals_are_rounded_to_two_digits_of_the_half_width(value: float, half_width: float, shown: str) -> None:
    cell = Interval(value, value - half_width, value + half_width, 0.95)
    assert f"| x | {shown} |" in markdown(Table("", ("name", "cell"), (("x", cell),)))


def test_scenario_table_has_the_numbers_of_the_results() -> None:
    results = made_comparison({"srpt": 1.3, "dynasplit": 1.0})
    response, quantiles = result_tables(results)[:2]
    assert column(response, "policy") == column(quantiles, "policy") == ["srpt", "dynasplit"]
    for row, result in enumerate(results.values()):
        assert column(response, "mean response")[row] == result.interval("mean_response")
        assert column(response, "mean slowdown")[row] == result.interval("mean_slowdown")
        assert column(quantiles, "p99.99")[row] == result.quantile(0.9999)
        assert column(response, "max response")[row] == result.max_response
        assert column(response, "max slowdown")[row] == result.max_slowdown


def test_normalised_tail_is_tabulated_in_mean_service_times_as_far_as_it_was_seen() -> None:
    """T = S/c has R = 1 and T = 2S/c has R = 2^1.5; at four standard deviations, false alarms below 4e-4."""
    results = made_comparison({"exact": 1.0, "double": 2.0}, scale=5.0)
    tails = result_tables(results)[2]
    assert tails.columns == ("policy", "R(1)", "R(10)", "R(100)", "R(1000)")
    for t in (1, 10, 100):
        exact, double = column(tails, f"R({t})")
        assert isinstance(exact, Interval)
        assert isinstance(double, Interval)
        assert exact == results["exact"].interval(f"normalised_tail:{5 * t}")
        deviation = 1 / math.sqrt(ROWS * JOBS * float(results["exact"].sizes.tail(0.4 * 5 * t)))
        assert exact.value == pytest.approx(1, abs=4 * deviation)
        if t > 1:  # at t = 1, P[S > ct/2] is 1
            assert double.value == pytest.approx(2**1.5, abs=4 * 2**0.75 * deviation)
    assert results["exact"].events(5000) < 10 <= results["double"].events(5000)
    assert column(tails, "R(1000)")[0] is None


def test_patience_brings_throughput_and_abandonment_and_no_normalised_tail() -> None:
    results = made_comparison({"fcfs": 1.0}, "impatient-100", abandoned=5_000, present=7)
    *_, patience, by_size, present = result_tables(results)
    assert patience.columns[1:] == ("throughput", "abandonment", "mean waiting", "utilisation")
    throughput, abandonment, *_ = patience.rows[0][1:]
    assert isinstance(throughput, Interval)
    assert isinstance(abandonment, Interval)
    assert throughput.value == JOBS / 1000
    assert abandonment.value == pytest.approx(5_000 / (JOBS + 5_007))
    assert column(present, "present") == [7 * ROWS]
    classes = results["fcfs"].by_size()
    assert by_size.columns[1:] == tuple(f"to {end:.3g}" for end in classes.edges[1:])
    assert by_size.rows[0][1:] == tuple(classes.served)
    assert 0 < min(classes.served) < max(classes.served) == 1  # who abandons has size 1
    assert not any(table.title.startswith("Normalised tail") for table in result_tables(results))


def test_trace_has_response_time_and_slowdown() -> None:
    results = made_comparison({"srpt": 1.3}, **TRACE)
    response, slowdown = result_tables(results)
    assert response.title == "Response time [s]"
    assert response.columns == slowdown.columns == ("policy", "mean", "p50", "p90", "p99", "p99.9", "max")
    assert column(slowdown, "max") == [pytest.approx(1.3 / 0.4)]
    header = csv_text([response, slowdown]).splitlines()[0].split(",")
    assert "response max" in header
    assert "slowdown mean low" in header


def test_differences_are_to_the_first_policy() -> None:
    results = made_comparison({"double": 2.0, "exact": 1.0})
    difference = column(difference_table(results), "mean response")[0]
    assert isinstance(difference, Interval)
    assert difference.value == pytest.approx(-results["exact"].mean_response)
    assert paired_differences(results)["exact"]["mean_response"] == difference
    assert csv_text([*result_tables(results), difference_table(results)]).count("difference mean response") == 3


def test_headline_names_what_was_simulated() -> None:
    results = made_comparison({"srpt": 1.0})
    assert headline(results, "high-load-2") == (
        "high-load-2: 2 servers, load 0.8, c = min(1, spare) = 0.4; 200,000 jobs in 10 streams, seed 0"
    )
    trace = made_comparison({"srpt": 1.0}, **TRACE, load=0.81234)
    assert headline(trace, "jobs.csv") == "jobs.csv: 2 servers, load 0.812; 200,000 jobs"


def test_speed_counts_the_jobs_of_all_policies_over_the_time_of_the_run() -> None:
    results = made_comparison({"srpt": 1.0, "ps": 2.0})
    assert speed(results) == "400,000 jobs simulated in 0.5 s, 800,000 jobs/s"


def test_figure_shows_normalised_tails_with_bands() -> None:
    results = made_comparison({"srpt": 1.3, "exact": 1.0, "double": 2.0}, scale=5.0)
    (axes,) = tail_figure(results, "the title").axes
    assert axes.get_xlabel() == "response time t [mean service times]"
    assert axes.get_ylabel() == "P[T > t] / P[S > c t]"
    assert axes.get_title(loc="left") == "the title"
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    bands = [item for item in axes.collections if isinstance(item, PolyCollection)]
    assert len(bands) == 3
    legend = axes.get_legend()
    assert legend is not None
    # From top to bottom, as the lines end: double 2^1.5, srpt 1.3^1.5, exact 1.
    assert [text.get_text() for text in legend.get_texts()] == ["double", "srpt", "exact", "P[S > c t]"]


def test_figure_draws_the_tail_and_its_interval_where_ten_jobs_lie_beyond() -> None:
    results = made_comparison({"exact": 1.0}, scale=5.0)
    result = results["exact"]
    (axes,) = tail_figure(results, "").axes
    lines = [line for line in axes.lines if len(line.get_xdata()) > 2]
    times = 5 * np.concatenate([np.asarray(line.get_xdata(), dtype=np.float64) for line in lines])
    assert result.events(times.max()) >= 10
    assert result.events(times.max() * 10 ** (2 / 24)) < 10
    (line,) = (line for line in axes.lines if line.get_label() == "exact")
    t = 5 * np.asarray(line.get_xdata(), dtype=np.float64)
    np.testing.assert_allclose(np.asarray(line.get_ydata()), result.normalised_tail(t))
    (band,) = axes.collections
    ends = band.get_paths()[0].vertices
    low, high = result.normalised_tail_interval(t)
    for end in (low, high):
        for point in zip(t / 5, end, strict=True):
            assert np.isclose(ends, point, rtol=1e-12).all(axis=1).any()


def test_figure_of_a_trace_is_in_seconds() -> None:
    (axes,) = tail_figure(made_comparison({"srpt": 1.0, "ps": 2.0}, **TRACE), "").axes
    assert axes.get_xlabel() == "response time t [seconds]"
    assert axes.get_ylabel() == "P[T > t]"
    top = max(float(np.max(line.get_ydata())) for line in axes.lines if len(line.get_ydata()))
    assert top == 1.0


def test_figure_of_overload_has_plain_tails() -> None:
    (axes,) = tail_figure(made_comparison({"fcfs": 1.0}, "impatient-100", abandoned=9), "").axes
    assert axes.get_ylabel() == "P[T > t]"


def test_figure_line_is_thin_and_without_band_where_the_interval_reaches_zero() -> None:
    """All long responses are in one row of ten: the interval of that part of the tail holds 0."""
    drawn = np.full((10, 1000), 1.0)
    responses = np.linspace(1, 2, 10_000).reshape(1000, 10).T.copy()
    responses[0, :50] = np.linspace(50, 100, 50)
    sizes = law({"law": "exponential", "mean": 1.0})
    results = Comparison([made_result("srpt", responses, drawn, sizes=sizes)])
    (axes,) = tail_figure(results, "").axes
    sure, unsure = (
        np.concatenate([line.get_xdata() for line in axes.lines if (line.get_label() == "srpt") is wanted])
        for wanted in (True, False)
    )
    assert sure.max() < 2.2 < unsure.max()
    (band,) = axes.collections
    assert band.get_paths()[0].vertices[:, 0].max() == sure.max()


def test_figure_is_drawn_for_too_few_jobs_as_well(tmp_path: Path) -> None:
    ones = np.ones((1, 3))
    figure = tail_figure(Comparison([made_result("srpt", ones, ones)]), "three jobs")
    figure.savefig(tmp_path / "tail.png")
    assert not any(len(line.get_xdata()) for line in figure.axes[0].lines)


def test_without_matplotlib_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"install queue-env\[plot\]"):
        require_matplotlib()


def test_atomic_file_replaces_on_success_and_keeps_on_error(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text("before")
    with pytest.raises(TypeError), atomic_file(path) as file:
        file.writelines([b"half", None])  # type: ignore[list-item]
    assert path.read_text() == "before"
    with atomic_file(path) as file:
        file.write(b"after")
        file.flush()
        assert path.read_text() == "before"
    assert path.read_text() == "after"
    assert [item.name for item in tmp_path.iterdir()] == ["table.csv"]


def test_csv_of_results_can_be_read_back() -> None:
    results = made_comparison({"srpt": 1.3, "thresh-split:d=2,e=3": 1.0})
    rows = list(csv.DictReader(io.StringIO(csv_text(result_tables(results)))))
    assert [row["policy"] for row in rows] == list(results)
    for row, result in zip(rows, results.values(), strict=True):
        assert float(row["mean response high"]) == result.interval("mean_response").high
