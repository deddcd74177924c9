"""Measure the shipped networks, for the tables of their model card.

    bao lab card            # those that have changed since they were measured
    bao lab card malawi     # this one, in any case

Each network alone plays :data:`BOTS` from :data:`PAIRS` openings and both seats. The results go to
``agents/card.json``, from which ``bao lab tables`` writes the tables
of the card. A network whose file is the same as in there is not measured again.
"""

from __future__ import annotations

import argparse
import hashlib
import json
from pathlib import Path
from typing import Any

from bao_agents import registry
from bao_agents.arena.match import play_match
from bao_agents.arena.report import markdown_table
from bao_agents.nets import checkpoint
from bao_agents.progress import Progress
from bao_agents.provenance import provenance

from bao_env.files import write_atomically
from bao_env.options import Run

BOTS = ("random", "greedy", "alphabeta:2", "alphabeta:4")
"""Opponents of each network."""
PAIRS = 1000
"""Openings against each bot."""
SEED = 1
"""Seed of openings and bots."""
CARD = registry.CHECKPOINTS / "card.json"
"""File of the measurements."""


def digest(name: str) -> str:
    """Return a digest of a shipped network's file."""
    return hashlib.sha256(_file(name).read_bytes()).hexdigest()[:16]


def _file(name: str) -> Path:
    return registry.CHECKPOINTS / f"{name}.safetensors"


def measured() -> dict[str, Any]:
    """Read :data:`CARD`: the result of :func:`measure` for each network."""
    if not CARD.exists():
        return {}
    found: dict[str, Any] = json.loads(CARD.read_text("utf-8"))
    return found


def measure(name: str, pairs: int = PAIRS) -> dict[str, Any]:
    """Measure a shipped network; return plain values for the card.

    Args:
        name: name of the network.
        pairs: number of openings against each bot.
    """
    loaded = checkpoint.load(_file(name))
    config = loaded.info["config"]
    player = registry.load(name, ruleset=loaded.ruleset)
    games = {}
    for bot in BOTS:
        opponent = registry.load(bot, ruleset=loaded.ruleset, seed=SEED + 1)
        with Progress(total=2 * pairs, unit="game", desc=f"{name}, {bot}") as bar:
            match = play_match(
                player,
                opponent,
                ruleset=loaded.ruleset,
                pairs=pairs,
                seed=SEED,
                progress=bar.update,
            )
        games[bot] = match.score.to_dict()
    return {
        "file": digest(name),
        "bytes": _file(name).stat().st_size,
        "numbers": sum(part.numel() for part in loaded.network.parameters()),
        "rules": loaded.ruleset.name,
        "kind": loaded.network.config.kind,
        "hidden": list(loaded.network.config.hidden),
        "method": config["method"],
        "plies": loaded.info["steps"],
        "seconds": loaded.info["seconds"],
        "training_seed": config["seed"],
        "games": games,
        "made_with": provenance(loaded.ruleset),
    }


def networks_table(card: dict[str, Any]) -> str:
    """Return a Markdown table of the networks and their training."""
    rows = [
        [
            f"`{name}`",
            f"`{found['method']}`",
            f"`{found['kind']}`",
            " and ".join(map(str, found["hidden"])),
            f"{found['numbers']:,}",
            f"{found['bytes'] / 1e6:.1f} MB",
            f"{found['plies'] / 1e6:.0f} million",
            f"{found['seconds'] / 60:.0f}",
            found["training_seed"],
        ]
        for name, found in card.items()
    ]
    head = ["network", "method", "reads", "units", "numbers", "size", "plies", "minutes", "seed"]
    return markdown_table(head, rows, texts=4)


def games_table(card: dict[str, Any]) -> str:
    """Return a Markdown table of the networks' points against the bots, in percent."""
    rows = [
        [f"`{name}`", *(_points(found["games"][bot]) for bot in BOTS)]
        for name, found in card.items()
    ]
    return markdown_table(["network", *BOTS], rows)


def _points(score: dict[str, Any]) -> str:
    """Format a score in percent with its 95 % interval."""
    rate, low, high = (100 * score[key] for key in ("score", "score_low", "score_high"))
    return f"{rate:.1f} ({low:.1f} to {high:.1f})"


def command(parser: argparse.ArgumentParser) -> Run:
    """``bao lab card``: measure the shipped networks, for the tables of their model card."""
    parser.add_argument(
        "networks",
        nargs="*",
        metavar="NETWORK",
        help=f"of {', '.join(registry.shipped())}; by default those that have changed",
    )
    return _run


def _run(args: argparse.Namespace) -> None:
    if unknown := set(args.networks) - set(registry.shipped()):
        raise ValueError(f"no shipped network is called {', '.join(sorted(unknown))}")
    card = measured()
    for name in registry.shipped():
        changed = card.get(name, {}).get("file") != digest(name)
        if name in args.networks or (changed and not args.networks):
            card[name] = measure(name)
            write_atomically(CARD, json.dumps(card, indent=1, sort_keys=True) + "\n")
    card = dict(sorted(card.items()))
    print(networks_table(card), games_table(card), sep="\n\n")
