"""The command line `queue-env`; libraries are loaded inside the commands, so that `--help` is quick."""

from queue_env.cli.app import app, main

__all__ = ["app", "main"]
