"""The options of the commands, with their help."""

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

_TRACE, _RUN, _OUTPUT = "A trace in place of a scenario", "The run", "The output"

ScenarioName: TypeAlias = Annotated[
    str, typer.Argument(metavar="SCENARIO", help="A named scenario; `queue-env list` shows them.")
]
OptionalScenarioName: TypeAlias = Annotated[
    str | None, typer.Argument(metavar="SCENARIO", help="A named scenario; `queue-env list` shows them.")
]
Overrides: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Another value for a field of the scenario, as JSON: --set load=0.9, or "
        """--set 'sizes={"law": "pareto", "alpha": 2, "mean": 1}'. May be repeated.""",
    ),
]
Policies: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--policy",
        metavar="POLICY",
        help="Such as srpt, or thresh-split:d=10, or all for every policy that can run; srpt by default. "
        "May be repeated; differences are to the first.",
    ),
]
Jobs: TypeAlias = Annotated[
    str | None,
    typer.Option(metavar="COUNT", help="Jobs to count, such as 1e7; of a trace, its first so many."),
]
Seed: TypeAlias = Annotated[int, typer.Option(help="Seed of the jobs.")]
Servers: TypeAlias = Annotated[
    int | None, typer.Option(help="Number of servers in place of the scenario's; a trace needs it.")
]
Load: TypeAlias = Annotated[
    float | None,
    typer.Option(help="Load in place of the scenario's; a trace's arrivals are stretched or squeezed to it."),
]
Clock: TypeAlias = Annotated[str | None, typer.Option(help="What uses up patience: queue, fractional or sojourn time.")]
Trace: TypeAlias = Annotated[
    Path | None,
    typer.Option(help="File: .csv, .csv.gz, .swf, .swf.gz or .parquet.", rich_help_panel=_TRACE),
]
Arrival: TypeAlias = Annotated[
    str | None, typer.Option(metavar="COLUMN", help="Column of arrival times.", rich_help_panel=_TRACE)
]
Size: TypeAlias = Annotated[
    str | None,
    typer.Option(
        metavar="SUM",
        help="Sum of columns, with factors, and numbers, in seconds: 0.1 + 0.02*tokens.",
        rich_help_panel=_TRACE,
    ),
]
Patience: TypeAlias = Annotated[
    str | None,
    typer.Option(metavar="SUM", help="Sum of the same form; by default no job gives up.", rich_help_panel=_TRACE),
]
Warmup: TypeAlias = Annotated[
    str | None,
    typer.Option(metavar="COUNT", help="Jobs of each stream before the first that counts.", rich_help_panel=_RUN),
]
Streams: TypeAlias = Annotated[
    int | None,
    typer.Option(help="Independent streams; their spread gives the intervals.", rich_help_panel=_RUN),
]
Threads: TypeAlias = Annotated[int | None, typer.Option(help="Threads to run on.", rich_help_panel=_RUN)]
Checkpoint: TypeAlias = Annotated[
    Path | None,
    typer.Option(help="File to save the run in, and to go on from if it is there.", rich_help_panel=_RUN),
]
Out: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        metavar="DIRECTORY",
        help="Where to write result.json, table.csv, table.md and tail.png.",
        rich_help_panel=_OUTPUT,
    ),
]
Sort: TypeAlias = Annotated[
    bool, typer.Option("--sort", help="Sort the rows by arrival time first.", rich_help_panel=_TRACE)
]
SkipInvalid: TypeAlias = Annotated[
    bool,
    typer.Option("--skip-invalid", help="Leave out rows with unknown or impossible values.", rich_help_panel=_TRACE),
]
Records: TypeAlias = Annotated[
    bool,
    typer.Option("--records", help="Write the times of each job to --out too, as .npz.", rich_help_panel=_OUTPUT),
]
Json: TypeAlias = Annotated[
    bool,
    typer.Option("--json", help="Print JSON, and nothing else, on stdout.", rich_help_panel=_OUTPUT),
]
BenchJobs: TypeAlias = Annotated[str, typer.Option(metavar="COUNT", help="Jobs of each run, such as 2e6.")]
Quick: TypeAlias = Annotated[bool, typer.Option("--quick", help="Fewer cases.")]
Environments: TypeAlias = Annotated[
    bool, typer.Option("--environments", help="Time the Gymnasium environments in place of the simulator.")
]
