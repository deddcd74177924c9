"""Play this checkout's players against those of another checkout, for example an older commit.

    git worktree add ../old 0e3acc9
    bao versus guided:72000n --other ../old --pairs 500

Each player runs in a process of its own with the code of its own checkout, on one thread. They
play every opening from both seats. The processor time a move is printed beside the score, so that
limits in nodes can be chosen for equal time, independent of the machine's load. ``--json`` keeps
the results after every few games, and the same command continues with them.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
from bao_agents.arena.elo import score_pairs
from bao_agents.arena.match import play_openings
from bao_agents.arena.openings import OPENING_PLIES, MatchOpenings, draw_openings
from bao_agents.progress import Progress
from bao_agents.provenance import commit_of

from bao_env.engine.batch import Engine
from bao_env.engine.position import Actions, Words
from bao_env.engine.ruleset import Ruleset
from bao_env.files import write_atomically
from bao_env.options import Run, add_options, add_player_options, at_least

HERE = Path(__file__).parents[2]
"""The folder of this checkout."""
_SCRIPT = Path(__file__).with_name("remote_player.py")
PART = 20
"""Number of openings after which the results are kept."""
_WARM_UP = 4
"""Positions played before the clock runs, so that everything is compiled."""


class RemotePlayer:
    """Player of a checkout, in a process of its own (:mod:`bao_training.remote_player`).

    Args:
        name: player name for :func:`bao_agents.load` there.
        checkout: folder of the checkout.
        ruleset: the rules.
        seed: seed of the player's random choices.

    Attributes:
        seconds: processor time of its choices.
        moves: number of its choices.
    """

    def __init__(self, name: str, checkout: Path, ruleset: Ruleset, seed: int) -> None:
        if not (checkout / "agents" / "bao_agents").exists():
            raise ValueError(f"{checkout} is no checkout of bao_env: it has no agents/bao_agents")
        self.name, self.checkout = name, checkout
        self.seconds, self.moves = 0.0, 0
        root = checkout.resolve()
        self._process = subprocess.Popen(
            [sys.executable, "-c", _SCRIPT.read_text("utf-8"), name, ruleset.name, str(seed)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,  # only this process answers Ctrl-C
            cwd=checkout,
            env=os.environ
            | {
                "PYTHONPATH": os.pathsep.join(map(str, (root, root / "agents"))),
                "OMP_NUM_THREADS": "1",
            },
        )

    def warm_up(self, ruleset: Ruleset) -> None:
        """Choose some moves that do not count, so that nothing is left to compile.

        Raises:
            ValueError: see :meth:`act`.
        """
        openings = draw_openings(ruleset, _WARM_UP, 8, 0, None).positions
        masks, winners = np.empty(_WARM_UP, np.uint64), np.empty(_WARM_UP, np.int8)
        Engine(ruleset).legal_masks(openings, masks, winners)
        self.act(openings, masks)
        self.seconds, self.moves = 0.0, 0

    def act(self, positions: Words, masks: Words) -> Actions:
        """See :meth:`bao_env.bots.Agent.act`.

        Raises:
            ValueError: the process has ended; stderr has the reason.
        """
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None and stdout is not None
        count = len(masks)
        try:
            stdin.write(count.to_bytes(8, sys.byteorder) + positions.tobytes() + masks.tobytes())
            stdin.flush()
        except BrokenPipeError:
            pass  # the answer is empty then
        answer = stdout.read(8 * (1 + count))
        if len(answer) < 8 * (1 + count):
            raise ValueError(f"{self.name} of {self.checkout} has ended; see above for the reason")
        self.seconds += float(np.frombuffer(answer[:8], np.float64)[0])
        self.moves += count
        return np.frombuffer(answer[8:], np.int64).copy()

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.communicate()


def play(
    players: tuple[RemotePlayer, RemotePlayer],
    openings: MatchOpenings,
    ruleset: Ruleset,
    report: dict[str, Any],
    path: Path | None,
) -> None:
    """Play the openings that are missing in ``report``.

    Args:
        players: this checkout's and the other's.
        openings: all openings.
        ruleset: the rules.
        report: results so far, changed in place: ``points``, a pair for each opening; ``seconds``
            and ``moves`` of both players.
        path: file for the report, written every :data:`PART` openings, or None.
    """
    engine, done = Engine(ruleset), len(report["points"])
    with Progress(total=2 * len(openings), initial=2 * done, unit="game") as bar:
        for low in range(done, len(openings), PART):
            match = play_openings(*players, openings[low : low + PART], engine, progress=bar.update)
            report["points"] += match.points.tolist()
            for i, player in enumerate(players):
                report["seconds"][i] += player.seconds
                report["moves"][i] += player.moves
                player.seconds, player.moves = 0.0, 0
            bar.set_postfix_str(f"{score_pairs(np.array(report['points'])).rate:.1%}")
            if path is not None:
                write_atomically(path, (json.dumps(report) + "\n").encode())


def kept(path: Path | None, match: dict[str, Any]) -> dict[str, Any]:
    """Read the report of a match from ``path``, or return one without games.

    Raises:
        ValueError: the file is of another match, or no report.
    """
    if path is None or not path.exists():
        return match | {"points": [], "seconds": [0.0, 0.0], "moves": [0, 0]}
    try:
        report: dict[str, Any] = json.loads(path.read_text("utf-8"))
        played = {key: report[key] for key in match}
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ValueError(f"{path} is no report of a match: give another --json") from error
    if played != match:
        raise ValueError(f"{path} is of another match, {played}: give another --json")
    return report


def command(parser: argparse.ArgumentParser) -> Run:
    """``bao versus``: play this checkout's players against those of another one."""
    parser.add_argument("player", metavar="PLAYER", help="of this checkout")
    parser.add_argument("opponent", nargs="?", metavar="OPPONENT", help="the same, if not given")
    parser.add_argument(
        "--other", type=Path, default=HERE, metavar="DIR", help="the opponent's checkout (this one)"
    )
    parser.add_argument(
        "--pairs", type=at_least(1), default=500, help="openings, both seats (default: 500)"
    )
    add_options(parser, "ruleset", "seed")
    parser.add_argument(
        "--json", type=Path, metavar="FILE", help="keep the results there, to continue from"
    )
    add_player_options(parser)
    return _run


def _run(args: argparse.Namespace) -> None:
    ruleset, other = args.ruleset, args.other.resolve()
    names = [args.player, args.opponent or args.player]
    match = {
        "players": names,
        "commits": [commit_of(HERE), commit_of(other)],
        "ruleset": ruleset.name,
        "pairs": args.pairs,
        "seed": args.seed,
    }
    report = kept(args.json, match)
    players: list[RemotePlayer] = []
    try:
        for name, checkout in zip(names, (HERE, other), strict=True):
            players.append(RemotePlayer(name, checkout, ruleset, args.seed))
            players[-1].warm_up(ruleset)
        openings = draw_openings(ruleset, args.pairs, OPENING_PLIES, args.seed)
        play((players[0], players[1]), openings, ruleset, report, args.json)
    except KeyboardInterrupt:
        raise KeyboardInterrupt("with --json the same command continues") from None
    finally:
        for player in players:
            player.close()
    score = score_pairs(np.array(report["points"]))
    times = [1000 * s / m for s, m in zip(report["seconds"], report["moves"], strict=True)]
    print(
        f"{names[0]} of {match['commits'][0]} against {names[1]} of {match['commits'][1]}: "
        f"{score.rate:.1%} ({score.low:.1%} to {score.high:.1%}) of {score.games} games, "
        f"{times[0]:.2f} and {times[1]:.2f} ms of processor time a move"
    )
