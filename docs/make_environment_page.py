"""Makes docs/environment.md from the docstring of `queue_env.QueueEnv`: `python docs/make_environment_page.py`.

What the page says is thus said once, beside the code; tests/test_environment_page.py compares it with the code.
"""

from __future__ import annotations

import inspect
from pathlib import Path

from queue_env import QueueEnv

PAGE = Path(__file__).with_name("environment.md")

HEAD = """\
# The environment

This page is the docstring of `queue_env.QueueEnv`, made by `python docs/make_environment_page.py`: change it there.
Around it: [environment-guide.md](environment-guide.md) has examples; [model.md](model.md) says how the queue works,
[agents.md](agents.md) how reference policies play in it, [discounting.md](discounting.md) how to discount by time,
[checks.md](checks.md) how to check environments, and [tooling.md](tooling.md) which libraries work with this one.
"""


def page() -> str:
    """Return the page as the docstring has it now."""
    return f"{HEAD}\n{inspect.getdoc(QueueEnv)}\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
