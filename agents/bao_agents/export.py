"""The command ``bao export``: write a checkpoint's network as an ONNX file.

The graph goes from features to logits and expected results, all float32:

============  ===================  =====================================================
name          shape                meaning
============  ===================  =====================================================
``features``  ``[rows, 439]``      the input: the features of :mod:`bao_agents.nets.features`
              ``[rows, 630]``      kind ``replies``: behind the features a sign, -1 if the
                                   opponent moves next, 1 if the same player does, 0 if the
                                   game is over; then the result for the player who chose,
                                   else 0
``logits``    ``[rows, 64]``       kind ``board``, a row for each position: the logits of
                                   the 64 actions, to be masked by the legal ones
              ``[rows]``           the other kinds, a row for each legal action: its logit
``value``     ``[rows]``           the expected result, -1 to 1, for the player to move;
                                   the other kinds: for the player who chooses the action
============  ===================  =====================================================

The file's metadata repeats this, with the rule set and the versions. :func:`features` makes the
input. An example::

    session = onnxruntime.InferenceSession("zanzibar.onnx")
    rows, legal_actions, indptr = features(board.words[None], legal, ruleset, "moves")
    logits, value = session.run(None, {"features": rows})
"""

from __future__ import annotations

import argparse
import json
import logging
import warnings
from pathlib import Path

import numpy as np
import onnx
import onnxscript  # noqa: F401 - torch.onnx.export needs it
import torch
from torch import Tensor, nn

import bao_agents.nets.features
from bao_agents.array_types import Float32Array, Int64Array
from bao_agents.nets import checkpoint
from bao_agents.nets.checkpoint import Checkpoint
from bao_agents.nets.checkpoint_files import find_checkpoint
from bao_agents.nets.encoding import encode
from bao_agents.nets.features import INPUTS_VERSION, expand
from bao_agents.nets.head import SIGN_AND_RESULT, TRUST
from bao_agents.nets.network import PolicyNetwork
from bao_env.engine.position import Words
from bao_env.engine.ruleset import RULES_VERSION, Ruleset, get_ruleset
from bao_env.files import write_atomically
from bao_env.observation.board import OBSERVATION_VERSION
from bao_env.options import Run, add_options, new_file

_MEANINGS = {
    "board": {
        "row": "a position, seen by the player to move",
        "logits": "float32[rows, 64]: the logit of each action; mask the illegal ones",
        "value": "float32[rows]: the expected result for the player to move, -1 to 1",
    },
    "moves": {
        "row": "the position after a legal action, seen by the player who chooses the action",
        "logits": "float32[rows]: the logit of the action",
        "value": "float32[rows]: the expected result for the player who chooses, -1 to 1",
    },
}
_MEANINGS["replies"] = _MEANINGS["moves"] | {
    "row": "the position after a legal action, seen by the player who moves next"
}


def features(
    positions: Words,
    legal: Words,
    ruleset: str | Ruleset,
    kind: str,
) -> tuple[Float32Array, Int64Array, Int64Array]:
    """Return the input of an exported network, and the legal actions.

    Args:
        positions: uint64[B, 6], packed positions.
        legal: uint64[B], their legal actions, bit a = action a.
        ruleset: the rule set of the network, or its name.
        kind: the kind of the network, ``"board"``, ``"moves"`` or ``"replies"``.

    Returns:
        features float32[B or K, columns]; legal actions int64[K], position * 64 + action; indptr
        int64[B + 1], the start of each position's legal actions.
    """
    rules = get_ruleset(ruleset).kernel_rules()
    encodings, legal_actions, indptr = encode(rules, positions, legal, kind)
    encodings = encodings[: len(positions) if kind == "board" else len(legal_actions)]
    # bfloat16 is the upper half of a float32.
    rows = (expand(encodings).astype(np.uint32) << 16).view(np.float32)
    if kind == "replies":
        rows = np.concatenate([rows, SIGN_AND_RESULT[encodings[:, -1]]], axis=1)
    return rows, legal_actions, indptr


class _Graph(nn.Module):
    """Compute logits and values of features; :mod:`bao_agents.nets.head` has the formulas."""

    def __init__(self, network: PolicyNetwork) -> None:
        super().__init__()
        self.trunk, self.head = network.trunk, network.head
        self.config = network.config
        self.columns = network.num_features + (2 if self.config.kind == "replies" else 0)

    def forward(self, features: Tensor) -> tuple[Tensor, Tensor]:
        sign: Tensor | float = 1.0
        result: Tensor | float = 0.0
        if self.config.kind == "replies":
            sign, result = features[:, -2], features[:, -1]
            features = features[:, :-2]
        outputs = self.head(self.trunk(features))
        values = sign * outputs[:, -1].tanh() + result
        if self.config.per_action:
            return outputs[:, 0] + TRUST * values, values
        return outputs[:, :-1], values


def to_onnx(trained: Checkpoint) -> onnx.ModelProto:
    """Return a checkpoint's network as an ONNX model.

    Raises:
        ValueError: torch cannot export the network's architecture.
    """
    network = trained.network
    graph = _Graph(network).eval()
    try:
        with warnings.catch_warnings(action="ignore"):
            program = torch.onnx.export(
                graph,
                (torch.zeros(3, graph.columns),),
                input_names=["features"],
                output_names=["logits", "value"],
                dynamic_shapes={"features": {0: torch.export.Dim("rows")}},
                dynamo=True,
                verbose=False,
            )
    except torch.onnx.errors.OnnxExporterError as error:
        raise ValueError(
            f"architecture {network.config.architecture} cannot be exported: {error!s:.500}"
        ) from error
    assert program is not None
    model: onnx.ModelProto = program.model_proto
    meanings = _MEANINGS[network.config.kind]
    metadata = {
        "ruleset": json.dumps(trained.ruleset.to_dict()),
        "rules_version": str(RULES_VERSION),
        "observation_version": str(OBSERVATION_VERSION),
        "inputs_version": str(INPUTS_VERSION),
        "kind": network.config.kind,
        "architecture": network.config.architecture,
        **meanings,
        "features": f"float32[rows, {graph.columns}]\n{bao_agents.nets.features.__doc__}",
    }
    onnx.helper.set_model_props(model, metadata)
    onnx.checker.check_model(model)
    return model


def command(parser: argparse.ArgumentParser) -> Run:
    """``bao export``: write a checkpoint's network as an ONNX file."""
    parser.add_argument("checkpoint", metavar="CHECKPOINT", help="a path, or a shipped name")
    parser.add_argument("file", type=new_file, metavar="FILE", help="the .onnx file to write")
    add_options(parser, "path", "allow")
    parser.epilog = (
        "agents/bao_agents/export.py describes the inputs and the outputs; so does the file."
    )
    return _export


def _export(args: argparse.Namespace) -> None:
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)  # it warns of packages it does not need
    path = find_checkpoint(args.checkpoint) or Path(args.checkpoint)
    trained = checkpoint.load(path)
    data = to_onnx(trained).SerializeToString()
    write_atomically(args.file, data)
    config = trained.network.config
    print(
        f"{args.file}: {len(data) / 1e6:.2f} MB, a network of kind {config.kind} for "
        f"{trained.ruleset.name}"
    )
