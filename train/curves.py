"""The curves of a search for TensorBoard: its value by generation, with those of the reference policies as lines."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from train.search import Search

__all__ = ["Curves"]

TAG = "tail score on the jobs of the validation"


class Curves:
    """Writes one run for the search, and one for each reference policy, into a directory.

    Args:
        directory: for TensorBoard; what is there stays.

    Raises:
        ImportError: TensorBoard is not installed.
    """

    def __init__(self, directory: Path) -> None:
        try:
            from tensorboard.summary import Writer
        except ImportError as error:
            raise ImportError("--tensorboard needs TensorBoard: install queue-env[train]") from error
        self._new, self._directory = Writer, directory
        self._writers: dict[str, Any] = {}

    def add(self, search: Search) -> None:
        """Add the last generation of a search."""
        generation = search.generations[-1]
        learned = self._writer("learned")
        learned.add_scalar("best candidate, on the generation's own jobs", min(generation.values), generation.number)
        learned.add_scalar("step size", generation.sigma, generation.number)
        self.add_values({"learned": generation.validation, **search.references}, generation.number)

    def add_values(self, values: Mapping[str, float], number: int) -> None:
        """Add a value of each policy, on the same jobs, after so many generations or steps."""
        for name, value in values.items():
            self._writer(name).add_scalar(TAG, value, number)
        for writer in self._writers.values():
            writer.flush()

    def close(self) -> None:
        """Close the files."""
        for writer in self._writers.values():
            writer.close()

    def _writer(self, name: str) -> Any:
        if name not in self._writers:
            self._writers[name] = self._new(str(self._directory / name))
        return self._writers[name]
