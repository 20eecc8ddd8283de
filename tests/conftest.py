"""Settings that all tests share."""

import signal
from collections.abc import Iterator

import pytest
from hypothesis import settings

# The same examples in every run; `pytest --hypothesis-profile=explore` looks for new ones.
settings.register_profile("same", derandomize=True, deadline=None, max_examples=80)
settings.register_profile("explore", deadline=None, max_examples=1000)
settings.load_profile("same")


@pytest.fixture(autouse=True)
def interrupts_are_heard() -> Iterator[None]:
    """A test that interrupts itself must be heard also where a shell has started the tests in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
