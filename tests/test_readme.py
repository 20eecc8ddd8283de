"""What README.md and docs/*.md show is run here, and where they point to is there.

Every line of a ``bash`` block and every ``python`` block is a test. They run in a temporary directory with a link to
examples/ and the checkout in PYTHONPATH, so that what they write, such as ``--out docs/tail``, leaves the checkout
alone. (Links to the packages would make numba compile the kernel anew for each test: it goes by the path.) Commands
run exactly as written, with these exceptions:

- ``pip install`` is not run; that the extras it names exist is checked;
- ``make test`` and ``make check`` are not run, since they run these tests; the Makefile must have such targets;
- ``make demo`` runs in the checkout as ``make demo MINUTES=0.01 WIDTH=1 POLICIES=srpt OUT=<temporary directory>``,
  without its set-up (``--old-file``), for that would install packages;
- ``--jobs`` of 1e7 and more are cut to 1e5;
- ``python -m train.es`` stops after one small generation;
- ``python -m train.evaluate`` scores on light-2, where a plain run is enough, or makes two ``--replications``;
- ``python -m train.ppo``, ``train.sac`` and ``train.dqn`` have the settings of the tests, which take seconds;
- ``python -m baselines.scoreboard`` alone, which takes half an hour, is run for the policies srpt and fcfs on light-2.

docs/tutorial.md is one test: what it shows runs from top to bottom in one directory, for later steps use what earlier
ones wrote.

``python`` blocks run with warnings as errors. The comment after a ``print(...)`` is what must be printed, where it
begins like a number, a bracket or a truth value, or after ``->``. The trace that docs/workloads.md describes as a file
of the reader's is taken from ../shared.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.train.small_rl import ALGORITHMS, write_settings

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
TUTORIAL = ROOT / "docs" / "tutorial.md"
TRACE_NAME = "AzureLLMInferenceTrace_conv.csv"
TRACE = ROOT.parent / "shared" / "traces" / "azure-llm-conversation-2023.csv"

MANY_JOBS, FEW_JOBS = 1e7, "1e5"
TIMEOUT = 900  # seconds; the first use of each kind of policy compiles it

FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
JOBS = re.compile(r"--jobs[ =](\S+)")
EXTRAS = re.compile(r"\.\[([\w,-]+)\]")
EXPECTED = re.compile(r"^\s*print\(.*\)  # (?:-> )?((?<=-> ).+|[\[({'\d.+-].*|True|False)$", re.MULTILINE)
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
FORBIDDEN = re.compile(r"\bsessions?\b|(?<!\w)#\d+|/work/|/home/|/root/|/tmp/", re.IGNORECASE)


class Block(NamedTuple):
    """A piece of code in a page, and the line where it is."""

    page: Path
    line: int
    code: str


def blocks(language: str) -> Iterator[Block]:
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for fence in FENCE.finditer(text):
            if fence[1] == language:
                yield Block(page, text.count("\n", 0, fence.start(2)) + 1, fence[2])


def commands() -> Iterator[Block]:
    """The commands of all ``bash`` blocks, one a line, without comments."""
    for block in blocks("bash"):
        for offset, line in enumerate(block.code.splitlines()):
            command = re.sub(r"(?:^|\s+)# .*$", "", line).strip()
            if command:
                yield block._replace(line=block.line + offset, code=command)


def name(block: Block) -> str:
    return f"{block.page.name}:{block.line}:{block.code.splitlines()[0][:50]}"


def is_make(command: str) -> bool:
    return command.split()[0] == "make"


def is_install(command: str) -> bool:
    return command.startswith("pip install")


def shortened(command: str) -> str:
    if command == "python -m baselines.scoreboard":
        return f"{command} --scenario light-2 --policy srpt --policy fcfs"
    if command.startswith("python -m train.es"):
        return f"{command} --generations 1 --population 4 --replications 1"
    if command.startswith("python -m train.evaluate") and "--replications" in command:
        return re.sub(r"--replications \d+", "--replications 2", command)
    if command.startswith("python -m train.evaluate"):
        return command.replace(" high-load-2 ", " light-2 ") + f" --jobs {FEW_JOBS}"
    learner = re.match(r"python -m train\.(ppo|sac|dqn)\b", command)
    if learner:
        return f"{command} --settings {learner[1]}.yaml --steps 512"
    return JOBS.sub(lambda jobs: f"--jobs {FEW_JOBS}" if float(jobs[1]) >= MANY_JOBS else jobs[0], command)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    for name in ALGORITHMS:
        write_settings(tmp_path, name, replications=1)
    if TRACE.exists():
        (tmp_path / TRACE_NAME).symlink_to(TRACE)
    return tmp_path


def run(command: list[str], directory: Path) -> str:
    """Run a command with this interpreter's programs first in the path, and return its standard output."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT), "MPLBACKEND": "Agg"}
    done = subprocess.run(
        command, cwd=directory, env=environment, capture_output=True, text=True, timeout=TIMEOUT, check=False
    )
    assert done.returncode == 0, (
        f"{command} ended with {done.returncode}:\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
    )
    return done.stdout


def run_command(block: Block, directory: Path) -> None:
    assert run(["bash", "-o", "pipefail", "-c", shortened(block.code)], directory)


def run_script(block: Block, directory: Path) -> None:
    script = directory / "block.py"
    script.write_text(block.code, encoding="utf-8")
    printed = run([sys.executable, "-W", "error", str(script)], directory).splitlines()
    for expected in EXPECTED.findall(block.code):
        assert expected in printed


def skip_without_trace(code: str) -> None:
    if TRACE_NAME in code and not TRACE.exists():
        pytest.skip(f"{TRACE} is not there")


COMMANDS = list(commands())
RUNNABLE = [block for block in COMMANDS if not is_make(block.code) and not is_install(block.code)]
RUN_AS_WRITTEN = [block for block in RUNNABLE if block.page != TUTORIAL]
MAKE = [block for block in COMMANDS if is_make(block.code)]
INSTALL = [block for block in COMMANDS if is_install(block.code)]
SCRIPTS = list(blocks("python"))
PYTHON = [block for block in SCRIPTS if block.page != TUTORIAL]


def test_pages_have_code() -> None:
    # Were a pattern above broken, most tests here would silently be gone.
    assert len(RUN_AS_WRITTEN) > 10
    assert len(PYTHON) > 10
    assert sum(len(EXPECTED.findall(block.code)) for block in PYTHON) > 10
    assert MAKE
    assert INSTALL


@pytest.mark.parametrize("block", RUN_AS_WRITTEN, ids=name)
def test_command(block: Block, directory: Path) -> None:
    skip_without_trace(block.code)
    run_command(block, directory)


@pytest.mark.parametrize("block", MAKE, ids=name)
def test_make_target(block: Block) -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in block.code.split()[1:]:
        assert re.search(rf"^{re.escape(target)}:", makefile, re.MULTILINE), f"no target {target}"


@pytest.mark.parametrize("block", INSTALL, ids=name)
def test_extras(block: Block) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = EXTRAS.search(block.code)
    assert extras is not None
    assert set(extras[1].split(",")) <= set(project["optional-dependencies"])


def test_make_demo(tmp_path: Path) -> None:
    if not (ROOT / ".venv" / "bin" / "queue-env").exists():
        pytest.skip("make demo runs in .venv, which is not there")
    demo = [
        "make",
        "demo",
        "MINUTES=0.01",
        "WIDTH=1",
        "POLICIES=srpt",
        f"OUT={tmp_path / 'demo'}",
        "--old-file=.venv/demo-ready",
    ]
    run(demo, ROOT)
    made = {path.name for path in (tmp_path / "demo").iterdir()}
    assert {"ppo", "scoreboard.html", "scoreboard.md", "scoreboard.csv"} <= made
    table = (tmp_path / "demo" / "scoreboard.md").read_text(encoding="utf-8")
    assert "| srpt |" in table
    assert "policy.json |" in table


@pytest.mark.parametrize("block", PYTHON, ids=name)
def test_python(block: Block, directory: Path) -> None:
    skip_without_trace(block.code)
    run_script(block, directory)


def test_tutorial(directory: Path) -> None:
    steps = [*((block, run_command) for block in RUNNABLE), *((block, run_script) for block in SCRIPTS)]
    steps = sorted((step for step in steps if step[0].page == TUTORIAL), key=lambda step: step[0].line)
    assert len(steps) > 4
    for block, run_step in steps:
        run_step(block, directory)
    assert (directory / "policy.json").exists()


def prose(page: Path) -> str:
    return FENCE.sub("", page.read_text(encoding="utf-8"))


def anchors(page: Path) -> set[str]:
    """The anchors that GitHub makes of headings."""
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in HEADING.findall(prose(page))}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links(page: Path) -> None:
    broken = []
    for link in LINK.findall(prose(page)):
        if re.match(r"https?:|mailto:", link):
            continue
        file, _, anchor = link.partition("#")
        target = page.parent / file if file else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            broken.append(link)
    assert not broken


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_no_forbidden_words(page: Path) -> None:
    found = [match[0] for match in FORBIDDEN.finditer(page.read_text(encoding="utf-8"))]
    assert not found
