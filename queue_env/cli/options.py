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
        help="Such as srpt, thresh-split:d=10 or learned:FILE.json, or all for every reference policy that can run; "
        "srpt by default. May be repeated; differences are to the first.",
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

_PATHS = (
    "or learned:FILE.json, or module:attribute, or model.zip or algorithm:model.zip (pickles: name none that you do "
    "not trust); "
)
ScoredPolicies: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--policy",
        metavar="POLICY",
        help="Such as srpt, or thresh-split:d=10, or all for every reference policy that can run; "
        f"{_PATHS}fcfs, srpt, split and dynasplit by default. May be repeated; differences are to the first.",
    ),
]
ScenarioServers: TypeAlias = Annotated[int | None, typer.Option(help="Number of servers in place of the scenario's.")]
ScenarioLoad: TypeAlias = Annotated[float | None, typer.Option(help="Load in place of the scenario's.")]
TailRange: TypeAlias = Annotated[
    tuple[float, float],
    typer.Option("--range", metavar="T0 T1", help="Times over which the score averages, in mean service times."),
]
Width: TypeAlias = Annotated[
    float,
    typer.Option(help="Relative half-width of the score's 95 % interval; those of R(t) may be four times as wide."),
]
PlainJobs: TypeAlias = Annotated[
    str, typer.Option("--jobs", metavar="COUNT", help="Jobs of the plain run, such as 1e7.", rich_help_panel=_RUN)
]
MostJobs: TypeAlias = Annotated[
    str,
    typer.Option(
        metavar="COUNT",
        help="Jobs that may be simulated for the tail of each policy, in place of the wanted precision; about 10⁸, "
        "which the pilot and the first replications take, are made in any case.",
        rich_help_panel=_RUN,
    ),
]
CheckpointDirectory: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--checkpoint",
        metavar="DIRECTORY",
        help="Where to save what is finished of each policy, and to go on from.",
        rich_help_panel=_RUN,
    ),
]
ScoreOut: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--out",
        metavar="DIRECTORY",
        help="Where to write score.json, table.csv, table.md and tail.png.",
        rich_help_panel=_OUTPUT,
    ),
]
FigureScenarios: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--scenario",
        metavar="SCENARIO",
        help="A named scenario; high-load-2 and high-load-4 by default. May be repeated: a panel for each.",
    ),
]
FigurePolicies: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--policy",
        metavar="POLICY",
        help="Such as srpt, or thresh-split:d=10, or module:attribute; by default srpt, split, thresh-split, dynasplit "
        "with its three margins, backlog-split and super-server. May be repeated.",
    ),
]
TMax: TypeAlias = Annotated[float, typer.Option("--t-max", help="The last time, in mean service times.")]
FigureWidth: TypeAlias = Annotated[
    float, typer.Option("--width", help="Relative half-width of the decomposition's 95 % intervals.")
]
FigureOut: TypeAlias = Annotated[
    Path,
    typer.Option(
        "--out",
        metavar="FILE",
        help="The figure, a .png; a .csv with all points is written beside it.",
        rich_help_panel=_OUTPUT,
    ),
]
ImpatientServers: TypeAlias = Annotated[
    list[int] | None,
    typer.Option("--servers", help="Number of servers; 50, 200 and 1000 by default. May be repeated."),
]
ImpatientLoad: TypeAlias = Annotated[float, typer.Option("--load", help="Load, above 1.")]
ImpatientJobs: TypeAlias = Annotated[
    str, typer.Option("--jobs", metavar="COUNT", help="Jobs to count of each system under each policy, such as 4e6.")
]
ImpatientOut: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--out",
        metavar="FILE",
        help="The figure, a .png, by default by the name of the command in this directory; "
        "a .csv with all points is written beside it.",
        rich_help_panel=_OUTPUT,
    ),
]
BoardScenarios: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--scenario", metavar="SCENARIO", help="A named scenario; all by default. May be repeated."),
]
BoardPolicies: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--policy",
        metavar="POLICY",
        help="As for `queue-env score`; by default all reference policies that have a steady state, and the learned "
        "ones where they were trained. May be repeated.",
    ),
]
BoardOut: TypeAlias = Annotated[
    Path,
    typer.Option(
        "--out",
        metavar="DIRECTORY",
        help="Where to write scoreboard.md, scoreboard.csv and scoreboard.html.",
        rich_help_panel=_OUTPUT,
    ),
]
Ray: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--ray",
        metavar="[ADDRESS]",
        help="Run on a Ray cluster: HOST:PORT, local for one on this machine, or, if nothing is said, the one that "
        "runs on this machine, else local. The result is the same.",
        rich_help_panel=_RUN,
    ),
]
Over: TypeAlias = Annotated[
    list[str],
    typer.Option(
        "--over",
        metavar="AXIS",
        help="load=0.5:0.95:10 for 10 values at equal distances, b=0.1:10:5:log for 5 at equal ratios, or a list, "
        "servers=1,2,4. Twice for all combinations.",
    ),
]
Measure: TypeAlias = Annotated[
    str,
    typer.Option(
        help="mean_response, p99, p99.9, mean_slowdown, tail:1000 for P[T > 1000], normalised_tail:1000, throughput, "
        "abandonment and so on, or score."
    ),
]
SweepPolicies: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--policy",
        metavar="POLICY",
        help="Such as srpt, thresh-split:d=10 or learned:FILE.json; srpt by default. May be repeated; ratios are to "
        "the first.",
    ),
]
SweepJobs: TypeAlias = Annotated[
    str, typer.Option("--jobs", metavar="COUNT", help="Jobs to count at each point, such as 1e6.", rich_help_panel=_RUN)
]
SweepWidth: TypeAlias = Annotated[
    float | None,
    typer.Option(
        "--width",
        help="Of scores: the relative half-width of the 95 % interval, 0.05 by default.",
        rich_help_panel=_RUN,
    ),
]
SweepMostJobs: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--most-jobs",
        metavar="COUNT",
        help="Of scores: jobs that may be simulated for each in place of the wanted precision, 2e8 by default.",
        rich_help_panel=_RUN,
    ),
]
SweepOut: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--out",
        metavar="DIRECTORY",
        help="Where to write sweep.json, table.csv, table.md, sweep.png, sweep.svg, and points as they are finished.",
        rich_help_panel=_OUTPUT,
    ),
]
Resume: TypeAlias = Annotated[
    bool, typer.Option("--resume", help="Go on from the points that --out has.", rich_help_panel=_RUN)
]
