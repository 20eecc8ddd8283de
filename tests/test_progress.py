"""The bar is on a terminal's standard error only, late, and counts what all threads do."""

import io
import sys
import threading
import time
from collections.abc import Callable

import pytest

from queue_env import progress
from queue_env.progress import job_progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


Redirect = Callable[[io.StringIO], io.StringIO]


@pytest.fixture
def redirect(monkeypatch: pytest.MonkeyPatch) -> Redirect:
    """Puts a stream in the place of standard error, where the bar appears after a twentieth of a second.

    To be called in the test itself: pytest sets standard error anew after the fixtures.
    """
    monkeypatch.setattr(progress, "DELAY", 0.05)
    for name in ("FORCE_COLOR", "NO_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE", "JUPYTER_COLUMNS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")

    def put(stream: io.StringIO) -> io.StringIO:
        monkeypatch.setattr(sys, "stderr", stream)
        return stream

    return put


def wait_for(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 5
    while not condition():
        assert time.monotonic() < end, "waited for 5 s in vain"
        time.sleep(0.01)


def test_bar_shows_jobs_rate_and_time(redirect: Redirect, capsys: pytest.CaptureFixture[str]) -> None:
    terminal = redirect(Terminal())
    with job_progress(2_000_000, "srpt") as advance:
        advance(500_000)
        wait_for(lambda: "500,000 jobs" in terminal.getvalue())
        advance(500_000)
        wait_for(lambda: "jobs/s" in terminal.getvalue())
        print("a line for standard output")
        assert "2,000,000" not in terminal.getvalue()
        advance(1_000_000)
    shown = terminal.getvalue()
    assert "srpt" in shown
    assert "2,000,000 jobs" in shown
    assert "0:00:0" in shown
    assert "a line" not in shown
    assert capsys.readouterr().out == "a line for standard output\n"


@pytest.mark.parametrize("kind", [Terminal, io.StringIO])
def test_short_runs_are_silent(kind: type[io.StringIO], redirect: Redirect, monkeypatch: pytest.MonkeyPatch) -> None:
    stream = redirect(kind())
    monkeypatch.setattr(progress, "DELAY", 30.0)
    start = time.monotonic()
    with job_progress(10, "srpt", enabled=True) as advance:
        advance(10)
    assert stream.getvalue() == ""
    assert time.monotonic() - start < 5


def test_delay_is_two_seconds() -> None:
    assert progress.DELAY == 2.0


@pytest.mark.parametrize(("kind", "enabled"), [(io.StringIO, None), (Terminal, False)])
def test_silent_without_a_terminal_or_when_told(
    kind: type[io.StringIO], enabled: bool | None, redirect: Redirect
) -> None:
    stream = redirect(kind())
    threads = threading.active_count()
    with job_progress(10, "srpt", enabled) as advance:
        assert threading.active_count() == threads
        advance(5)
        time.sleep(0.2)
    assert stream.getvalue() == ""


def test_a_log_gets_the_last_state_when_asked(redirect: Redirect) -> None:
    log = redirect(io.StringIO())
    with job_progress(30, "srpt", enabled=True) as advance:
        advance(30)
        time.sleep(0.5)
    assert log.getvalue().count("30 jobs") == 1
    assert "\x1b" not in log.getvalue()


def test_threads_are_counted(redirect: Redirect) -> None:
    terminal = redirect(Terminal())
    with job_progress(None, "ps") as advance:

        def work() -> None:
            for _ in range(1000):
                advance(3)

        workers = [threading.Thread(target=work) for _ in range(4)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        wait_for(lambda: "12,000 jobs" in terminal.getvalue())


def test_interrupted_run_stops_the_bar(redirect: Redirect) -> None:
    terminal = redirect(Terminal())
    threads = threading.active_count()

    def interrupted() -> None:
        with job_progress(100, "srpt") as advance:
            advance(40)
            wait_for(lambda: "40 jobs" in terminal.getvalue())
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    wait_for(lambda: threading.active_count() == threads)
    assert terminal.getvalue().endswith("\x1b[?25h")  # the cursor is back


def test_negative_total() -> None:
    with pytest.raises(ValueError, match="total must be >= 0 or None, got -1"), job_progress(-1, "srpt"):
        pass


@pytest.mark.parametrize(("speed", "shown"), [(0.5, "0.5"), (999, "999.0"), (1500, "1.5 k"), (4_210_000, "4.2 M")])
def test_short_numbers(speed: float, shown: str) -> None:
    assert progress._short(speed) == shown
