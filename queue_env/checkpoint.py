"""A file of the finished streams of a run, from which the same run goes on."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from math import inf
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np
from numpy.typing import NDArray

from queue_env.distributions.checks import refuse

__all__ = ["Checkpoint"]

Streams = dict[int, list[dict[str, NDArray[Any]]]]


class Checkpoint:
    """Finished streams of one run, kept in an ``.npz`` file that is written beside and renamed.

    Args:
        path: the file; its folder must exist.
        identity: what the run is, JSON-able; a file of another run is refused.
        caller: name for messages.

    Raises:
        ValueError: the folder does not exist, or the file is not a checkpoint of this run.
    """

    def __init__(self, path: Path, identity: Mapping[str, Any], caller: str = "simulate") -> None:
        self._path, self._caller = path, caller
        self._identity = json.loads(json.dumps(identity))
        if not path.parent.is_dir():
            refuse(caller, "checkpoint", "a file in a folder that exists", str(path))
        self.seconds = 0.0
        self._saved, self._took = -inf, 0.0
        self._found = self._read() if path.exists() else {}

    def load(self) -> Streams:
        """Return the streams found in the file; ``seconds`` is the time that they took."""
        return dict(self._found)

    def save(self, finished: Streams, seconds: float, *, last: bool = False) -> None:
        """Write all finished streams, and the time that was spent on them since `load`.

        All are written each time; so unless it is the last, nothing is until ten times what writing took has passed.
        """
        began = monotonic()
        if not last and began - self._saved < 10 * self._took:
            return
        arrays = {
            f"{stream}/{policy}/{name}": array
            for stream, policies in finished.items()
            for policy, part in enumerate(policies)
            for name, array in part.items()
        }
        beside = self._path.with_name(self._path.name + ".part")
        with beside.open("wb") as file:
            head = {"identity": np.array(json.dumps(self._identity)), "seconds": np.array(self.seconds + seconds)}
            np.savez_compressed(file, **head, **arrays)  # type: ignore[arg-type]
        os.replace(beside, self._path)
        self._saved, self._took = monotonic(), monotonic() - began

    def _read(self) -> Streams:
        try:
            with np.load(self._path) as file:
                arrays = dict(file.items())
            identity, self.seconds = json.loads(str(arrays.pop("identity"))), float(arrays.pop("seconds"))
        except Exception as error:  # a damaged file can raise nearly anything
            raise ValueError(
                f"{self._caller}: checkpoint must be a file that {self._caller} wrote, got {str(self._path)!r}"
            ) from error
        for name, value in self._identity.items():
            if identity.get(name) != value:
                refuse(
                    self._caller, f"checkpoint {str(self._path)!r}", f"of a run with {name}={value}", identity.get(name)
                )
        finished: Streams = {}
        for key in sorted(arrays, key=lambda key: tuple(map(int, key.split("/")[:2]))):
            stream, policy, name = key.split("/")
            policies = finished.setdefault(int(stream), [])
            if len(policies) == int(policy):
                policies.append({})
            policies[int(policy)][name] = arrays[key]
        return finished
