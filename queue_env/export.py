"""Networks in the formats of others, ONNX and PyTorch's: from the features (B, F) to the anchor's rates (B,).

Numbers are float64, as here, so that the rates are the same to the last digits but one.
"""

from __future__ import annotations

import io
import json
from typing import Any

import numpy as np

from queue_env.network import FEATURES, Network

__all__ = ["describe", "onnx_bytes", "torch_bytes"]

INPUT, OUTPUT, BATCH = "features", "rate", "states"
EXTRA_FILE = "network.json"
"""The extra file of a PyTorch program in which `describe` stands as JSON."""

_OPSET, _IR = 17, 8  # of 2022, which every runtime of today reads


def describe(network: Network) -> dict[str, str]:
    """Return the names of the inputs, in their order and separated by commas, and the meaning of each by its name."""
    meaning = {feature.name: feature.meaning for feature in FEATURES}
    return {"features": ",".join(network.features), **{name: meaning[name] for name in network.features}}


def onnx_bytes(network: Network) -> bytes:
    """Return a network as an ONNX model, with `describe` as its metadata.

    Raises:
        ImportError: onnx is not installed.
    """
    try:
        import onnx
    except ImportError as error:
        raise ImportError("an ONNX model needs onnx: install queue-env[export]") from error
    from onnx import TensorProto, helper, numpy_helper

    nodes, weights, last = [], [], INPUT
    for layer, (matrix, bias) in enumerate(zip(network.weights, network.biases, strict=True)):
        names = [f"weights{layer}", f"biases{layer}"]
        weights += [numpy_helper.from_array(part, name) for part, name in zip((matrix, bias), names, strict=True)]
        nodes.append(helper.make_node("Gemm", [last, *names], [f"sum{layer}"], transB=1))
        final = layer == len(network.weights) - 1
        last = f"layer{layer}"
        function = "Sigmoid" if final else network.activation.capitalize()
        nodes.append(helper.make_node(function, [f"sum{layer}"], [last]))
    weights.append(numpy_helper.from_array(np.array([1]), "axis"))
    nodes.append(helper.make_node("Squeeze", [last, "axis"], [OUTPUT]))
    inputs = [helper.make_tensor_value_info(INPUT, TensorProto.DOUBLE, [BATCH, len(network.features)])]
    outputs = [helper.make_tensor_value_info(OUTPUT, TensorProto.DOUBLE, [BATCH])]
    graph = helper.make_graph(nodes, "anchor_rate", inputs, outputs, weights)
    opset = helper.make_opsetid("", _OPSET)
    model = helper.make_model(graph, opset_imports=[opset], ir_version=_IR, producer_name="queue-env")
    helper.set_model_props(model, describe(network))
    onnx.checker.check_model(model, full_check=True)
    return bytes(model.SerializeToString())


def torch_bytes(network: Network) -> bytes:
    """Return a network as a program of PyTorch, which `torch.export.load` reads, with `describe` as an extra file.

    Raises:
        ImportError: PyTorch is not installed.
    """
    try:
        import torch
    except ImportError as error:
        raise ImportError("a program of PyTorch needs torch: install queue-env[export]") from error

    example = torch.zeros(2, len(network.features), dtype=torch.float64)
    shapes = ({0: torch.export.Dim(BATCH)},)
    program = torch.export.export(_module(network), (example,), dynamic_shapes=shapes)
    file = io.BytesIO()
    torch.export.save(program, file, extra_files={EXTRA_FILE: json.dumps(describe(network))})
    return file.getvalue()


def _module(network: Network) -> Any:
    """Return a network as a module of PyTorch, which is installed."""
    import torch
    from torch import nn

    layers: list[nn.Module] = []
    for matrix, bias in zip(network.weights, network.biases, strict=True):
        linear = nn.Linear(matrix.shape[1], matrix.shape[0], dtype=torch.float64)
        linear.load_state_dict({"weight": torch.from_numpy(matrix), "bias": torch.from_numpy(bias)})
        layers += [linear, nn.Tanh() if network.activation == "tanh" else nn.ReLU()]
    return nn.Sequential(*layers[:-1], nn.Sigmoid(), nn.Flatten(0)).requires_grad_(False)
