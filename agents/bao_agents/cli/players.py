"""Run ``bao players``: list the players, with their Elo if it is known."""

from __future__ import annotations

import argparse
import textwrap

from bao_agents.arena.ladder import DEFAULT, anchors_elo
from bao_agents.cli.options import Run
from bao_agents.nets.checkpoint_files import beside, shipped
from bao_agents.players.registry import PLAYERS

_WIDTH = 80


def command(parser: argparse.ArgumentParser) -> Run:
    """Define ``bao players``: list the players."""
    return _print_players


def _print_players(args: argparse.Namespace) -> None:
    elo = {name: f"{rating:.0f}" for name, rating in anchors_elo().items()}
    width = max(map(len, PLAYERS))
    indent = " " * (width + 8)
    print("To begin, play against greedy or alphabeta:2. guided:100ms is the strongest.\n")
    print(f"{'player':{width}}   Elo  what it does")
    for example, meaning in PLAYERS.items():
        first = f"{example:{width}}  {elo.get(example, ''):>4}  "
        print(textwrap.fill(meaning, _WIDTH, initial_indent=first, subsequent_indent=indent))
    rated = ", ".join(f"{name} {rating}" for name, rating in elo.items())
    for paragraph in (
        f"Shipped checkpoints: {', '.join(shipped())}.",
        f"Runs here: {', '.join(beside('runs/')) or 'none yet; bao train makes runs'}.",
        f"The Elo ratings are from {DEFAULT}: {rated}. bao rate PLAYER rates any other player.",
    ):
        print("\n" + textwrap.fill(paragraph, _WIDTH))
