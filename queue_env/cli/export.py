"""The command `export`: a learned policy's network for use elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from queue_env.cli import options
from queue_env.cli.inputs import check_file
from queue_env.cli.output import json_text

if TYPE_CHECKING:
    from queue_env.network import Network

__all__ = ["export"]


def export(
    policy: Annotated[
        str, typer.Argument(metavar="MODEL", help="A learned policy, learned-high-load-2 or learned:FILE.json.")
    ],
    onnx: Annotated[Path | None, typer.Option(metavar="FILE.onnx", help="Where to write it as ONNX.")] = None,
    torch: Annotated[
        Path | None,
        typer.Option(metavar="FILE.pt2", help="Where to write it as a program of PyTorch, for torch.export.load."),
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Write the network of a learned policy for use elsewhere: from the features (B, F) to the anchor's rates (B,).

    Numbers are float64. The names of the features stand in the file, in their order.

    Example: queue-env export learned-high-load-2 --onnx policy.onnx
    """
    from queue_env.export import onnx_bytes, torch_bytes

    network = _network(policy)
    wanted: dict[str, tuple[Path | None, str, Callable[[Network], bytes]]] = {
        "--onnx": (onnx, ".onnx", onnx_bytes),
        "--torch": (torch, ".pt2", torch_bytes),
    }
    files = {path: write for path, _, write in wanted.values() if path is not None}
    if not files:
        raise ValueError("nothing to write: give --onnx FILE.onnx or --torch FILE.pt2")
    for option, (path, suffix, _) in wanted.items():
        _check(option, path, suffix)
    for path, write in files.items():
        _write(path, write(network))
    names, features = [str(path) for path in files], list(network.features)
    if as_json:
        typer.echo(json_text("export", policy=policy, files=names, features=features))
    else:
        typer.echo(f"{' and '.join(names)}: float64 features (B, {len(features)}) -> rate (B,), the features being")
        typer.echo(", ".join(features))


def _network(policy: str) -> Network:
    from queue_env.network import network_file, read_network

    file = network_file(policy)
    if file is None:
        raise ValueError(f"policy={policy!r} is no learned policy; allowed: learned-high-load-2 or learned:FILE.json")
    return read_network(file)[0]


def _check(option: str, path: Path | None, suffix: str) -> None:
    if path is not None:
        if path.suffix != suffix:
            raise ValueError(f"{option} must be a file whose name ends in {suffix}, got {str(path)!r}")
        check_file(option, path)


def _write(path: Path, content: bytes) -> None:
    from queue_env.report import atomic_file

    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_file(path) as file:
        file.write(content)
