"""Checkpoints that were damaged."""

from __future__ import annotations

import contextlib
import json
import random
import struct
from pathlib import Path

import numpy as np

from bao_env.bots import check_actions
from bao_env.engine.batch import Engine
from bao_env.engine.ruleset import RULESETS
from tests.attacks.engine import random_batch
from tests.attacks.hostile import replaced_somewhere
from tests.attacks.limits import GIB, SECONDS, limit_memory, within


def damaged(rng: random.Random, data: bytes) -> bytes:
    """A checkpoint cut or lengthened, or with other bytes, weights, or values in its head."""
    ways = {"flip": 2, "flip head": 1, "cut": 1, "longer": 1, "length": 1, "head": 2}
    ways |= {"numbers": 4, "note": 4}
    way = rng.choices(list(ways), list(ways.values()))[0]
    length = struct.unpack("<Q", data[:8])[0]
    if way == "numbers":
        numbers = np.frombuffer(data[8 + length :], "<f4").copy()
        for _ in range(rng.choice((1, 3, 100))):
            numbers[rng.randrange(len(numbers))] = rng.choice((np.nan, np.inf, 3e38, -3e38, 1e-45))
        return data[: 8 + length] + numbers.tobytes()
    if way in ("flip", "flip head"):
        changed = bytearray(data)
        for _ in range(rng.choice((1, 3, 100))):
            changed[rng.randrange(len(data) if way == "flip" else 8 + length)] = rng.randrange(256)
        return bytes(changed)
    if way == "cut":
        return data[: rng.choice((0, 4, 8, 8 + length, rng.randrange(len(data))))]
    if way == "longer":
        return data + rng.randbytes(rng.choice((1, 1000)))
    if way == "length":
        return struct.pack("<Q", rng.choice((0, 1, length - 1, length + 1, 2**63))) + data[8:]
    head = json.loads(data[8 : 8 + length])
    if way == "head":
        head = replaced_somewhere(rng, head)
    else:
        note = json.loads(head["__metadata__"]["bao_env"])
        head["__metadata__"]["bao_env"] = json.dumps(replaced_somewhere(rng, note))
    text = json.dumps(head).encode()
    return struct.pack("<Q", len(text)) + text + data[8 + length :]


def checkpoints(rng: random.Random, folder: Path) -> None:
    """A damaged checkpoint is refused, or its network plays with finite numbers."""
    import torch

    from agents.nets import checkpoint
    from agents.nets.network import KINDS, NetworkConfig, PolicyNetwork
    from agents.nets.policy import NetworkAgent

    torch.set_num_threads(1)

    def play(path: Path) -> None:
        loaded = checkpoint.load(path)
        positions, masks = random_batch(Engine(loaded.ruleset), 32, 25, 2)
        agent = NetworkAgent(loaded.network, loaded.ruleset)
        check_actions(agent.act(positions, masks), masks, "the network")
        said = agent.evaluate(positions, masks)
        assert np.isfinite(said.logits).all() and np.isfinite(said.values).all()

    files = []
    for kind in KINDS:
        config = NetworkConfig(kind, (rng.choice((1, 8, 32)),) * rng.randint(1, 3))
        saved = checkpoint.Checkpoint(
            PolicyNetwork(config),
            RULESETS[rng.choice(list(RULESETS))],
            {"steps": 7, "config": {"seed": 1}},
            {"adam": np.arange(5.0)},
        )
        checkpoint.save(folder / kind, saved)
        play(folder / kind)  # compiles
        files.append((folder / kind).read_bytes())
    limit_memory(2 * GIB)
    path = folder / "damaged.safetensors"
    for _ in range(300):
        data = damaged(rng, rng.choice(files))
        path.write_bytes(data)
        try:
            with within(SECONDS), contextlib.suppress(checkpoint.CheckpointError):
                play(path)
        except Exception as error:
            length = struct.unpack("<Q", data[:8])[0]
            raise AssertionError(f"the head is {data[8 : 8 + length][:3000]!r}") from error
