"""Measure a player against others in paired games.

    bao match runs/quick random greedy

Every opening, by default a random legal prefix that a search finds balanced, is played twice, once
from each seat. The table gives points per game (a draw counts as a half) and the Elo difference,
each with its 95 % interval over pairs, and the likelihood that the player is the stronger one
(:mod:`bao_agents.arena.elo`). ``--sprt`` stops a match as soon as a sequential test has its
verdict. The interval of such a match is biased; the verdict is not.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from bao_agents.arena.elo import Score, Sprt, finite, score_pairs
from bao_agents.arena.games import GAME_OVER, MAX_PLIES, MatchGames, faults_text, play_games
from bao_agents.arena.openings import (
    BALANCE,
    OPENING_PLIES,
    MatchOpenings,
    draw_openings,
    read_openings,
)
from bao_agents.cli.options import (
    Run,
    add_options,
    add_player_options,
    at_least,
    new_file,
    write_json,
)
from bao_agents.players import registry
from bao_agents.support.array_types import Float64Array, Int64Array, Uint8Array
from bao_agents.support.files import write_atomically
from bao_agents.support.provenance import provenance
from bao_env.board import Board
from bao_env.bots import Agent
from bao_env.engine.batch import Engine
from bao_env.engine.layout import NORTH, SOUTH
from bao_env.engine.position import opening
from bao_env.engine.ruleset import Ruleset, get_ruleset
from bao_env.envs.openings import MAX_OPENING_PLIES
from bao_env.notation.positions import NotationError
from bao_env.notation.transcript import Transcript, format_transcript, rules_head, transcribe

SPRT_PAIRS = 50
"""Pairs played between two checks of a sequential test."""


@dataclass(frozen=True)
class Match:
    """Every result of a match; ``score`` sums them up."""

    ruleset: Ruleset
    openings: MatchOpenings
    """The openings, one for both games of each pair."""
    points: Float64Array
    """float64[pairs, 2], points of the first player as South and as North."""
    plies: Int64Array
    """int64[pairs, 2], length of each game, its opening included."""
    actions: Uint8Array
    """uint8[pairs, 2, longest], the actions after the opening; 255 after the end."""
    moves: tuple[int, int]
    """Actions that the first and the second player chose."""
    seconds: tuple[float, float]
    """Processor time that these took the two players."""
    faults: tuple[list[str], list[str]]
    """For each player, the causes of the faults by which it lost games, one for each game."""
    score: Score
    verdict: str | None = None
    """``"H0"`` or ``"H1"``, if a sequential test ended the match."""

    def transcripts(self, names: tuple[str, str]) -> Iterator[str]:
        """Return each game in Donkers' notation, the pairs in order.

        Args:
            names: the names of the two players, for the head.
        """
        for (pair, first_seat), points in np.ndenumerate(self.points):
            start = opening(self.ruleset, int(self.openings.first_players[pair]))
            played = np.concatenate([self.openings.actions[pair], self.actions[pair, first_seat]])
            actions = played[played != GAME_OVER].tolist()
            south, north = names if first_seat == SOUTH else names[::-1]
            head = {"event": f"pair {pair + 1}", "south": south, "north": north}
            head |= rules_head(self.ruleset)
            if start.mover == NORTH:
                head["first player"] = "North"
            head["opening plies"] = str(np.sum(self.openings.actions[pair] != GAME_OVER))
            if points == 0.5:
                head["result"] = "draw"
            else:
                head["winner"] = "south" if (points == 1.0) == (first_seat == SOUTH) else "north"
            yield format_transcript(transcribe(start, actions, self.ruleset, head=head))


def play_match(
    first: Agent,
    second: Agent,
    *,
    ruleset: str | Ruleset = "zanzibar",
    pairs: int,
    opening_plies: int = OPENING_PLIES,
    balance: float | None = BALANCE,
    seed: int = 0,
    max_plies: int = MAX_PLIES,
    sprt: Sprt | None = None,
    progress: Callable[[int], None] = lambda ended: None,
) -> Match:
    """Play ``pairs`` pairs of games: each opening once with ``first`` as South, once as North.

    Args:
        first, second: the players; each gets all of its positions of a ply in one call.
        ruleset: the rules.
        pairs: number of openings; twice as many games are played.
        opening_plies: random legal plies that make an opening.
        balance: skip openings that a search finds less balanced than this; see
            :func:`bao_agents.arena.openings.draw_openings`.
        seed: the seed of the openings; players have their own.
        max_plies: a game that reaches this length is a draw.
        sprt: stop as soon as this test has a verdict; checked every :data:`SPRT_PAIRS` pairs.
        progress: called after each ply with the number of games that have just ended.

    Raises:
        ValueError: ``pairs`` is below 1, there are too few different openings, or a player chose an
            illegal action; the message says which of these.
    """
    if pairs < 1:
        raise ValueError(f"pairs={pairs}: expected at least 1")
    engine = Engine(get_ruleset(ruleset))
    openings = draw_openings(engine.ruleset, pairs, opening_plies, seed, balance)
    return play_openings(
        first, second, openings, engine, max_plies=max_plies, sprt=sprt, progress=progress
    )


def play_openings(
    first: Agent,
    second: Agent,
    openings: MatchOpenings,
    engine: Engine,
    *,
    max_plies: int = MAX_PLIES,
    sprt: Sprt | None = None,
    progress: Callable[[int], None] = lambda ended: None,
) -> Match:
    """Play a match from given openings; see :func:`play_match`."""
    step = len(openings) if sprt is None else SPRT_PAIRS
    batches: list[MatchGames] = []
    points = np.empty((0, 2))
    verdict = None
    for low in range(0, len(openings), step):
        part = openings[low : low + step]
        first_seats = np.tile(np.array([SOUTH, NORTH], np.int8), len(part))
        games = play_games(
            (first, second),
            np.repeat(part.positions, 2, axis=0),
            first_seats,
            engine,
            max_plies=max_plies,
            progress=progress,
        )
        batches.append(games)
        won = np.where(games.winners < 0, 0.5, games.winners == first_seats)
        points = np.concatenate([points, won.reshape(-1, 2)])
        if sprt is not None:
            verdict = sprt.verdict(score_pairs(points).pair_counts)
            if verdict is not None:
                break
    shape = len(points), 2
    faults = [[cause for games in batches for cause in games.faults[i]] for i in range(2)]
    longest = max(games.actions.shape[1] for games in batches)
    return Match(
        ruleset=engine.ruleset,
        openings=openings[: len(points)],
        points=points,
        plies=np.concatenate([games.plies for games in batches]).reshape(shape),
        actions=np.concatenate(
            [
                np.pad(
                    games.actions,
                    ((0, 0), (0, longest - games.actions.shape[1])),
                    constant_values=GAME_OVER,
                )
                for games in batches
            ]
        ).reshape(*shape, longest),
        moves=(sum(g.moves[0] for g in batches), sum(g.moves[1] for g in batches)),
        seconds=(sum(g.seconds[0] for g in batches), sum(g.seconds[1] for g in batches)),
        faults=(faults[0], faults[1]),
        score=score_pairs(points),
        verdict=verdict,
    )


# --- the command ----------------------------------------------------------------------------------


def check_names(*names: str) -> None:
    """Check that a transcript can hold the names of players; called before the games.

    Raises:
        ValueError: it cannot hold one, for example because of a line break.
    """
    for name in names:
        try:
            format_transcript(Transcript({"south": name}))
        except NotationError as error:
            raise ValueError(f"no transcript can name a player {name!r:.80}: {error}") from error


def ruleset_of(player: str) -> Ruleset | None:
    """Return the rule set that a checkpoint was trained under; None for a bot.

    Raises:
        CheckpointError: the file is not a usable checkpoint.
    """
    path = registry.parse(player).path
    if path is None:
        return None
    from bao_agents.nets import checkpoint

    return checkpoint.load(path).ruleset


@cache
def warm_up(player: str, ruleset: Ruleset) -> None:
    """Compile what a player needs, so that its first move takes no longer than the others.

    Another player of that name makes a move, which uses up no random numbers of the first. A
    program gets ready by itself.

    Args:
        player: the name for :func:`bao_agents.players.registry.load`.
        ruleset: the rules.
    """
    if registry.parse(player).kind.name != "pipe":
        registry.load(player, ruleset=ruleset).choose(Board(ruleset))


def milliseconds(match: Match) -> tuple[float, float]:
    """Return both players' processor milliseconds per move."""
    times = [1000 * match.seconds[i] / max(1, match.moves[i]) for i in range(2)]
    return times[0], times[1]


def table(matches: list[tuple[str, Match]]) -> tuple[list[str], list[list[str]]]:
    """Return head and rows of a table of the results: a row of two lines for each opponent."""
    head = ["opponent", "won", "drawn", "lost", "score", "Elo", "LOS", "ms"]
    rows = []
    for name, match in matches:
        score = match.score
        elo, low, high = (f"{value:.0f}" for value in score.elo)
        own_time, other_time = (f"{ms:.{3 if ms < 1 else 1}f}" for ms in milliseconds(match))
        rows.append(
            [
                *(name, str(score.wins), str(score.draws), str(score.losses)),
                f"{100 * score.rate:.1f}\n{100 * score.low:.1f} to {100 * score.high:.1f}",
                f"{elo}\n{low} to {high}",
                f"{100 * score.los:.1f}",
                f"{own_time}\n{other_time}",
            ]
        )
    return head, rows


def result(opponent: str, match: Match) -> dict[str, Any]:
    """Return one opponent's row for JSON."""
    elo, low, high = map(finite, match.score.elo)
    own_time, other_time = milliseconds(match)
    return {
        "opponent": opponent,
        **match.score.to_dict(),
        "elo": elo,
        "elo_low": low,
        "elo_high": high,
        "sprt": match.verdict,
        "mean_plies": float(match.plies.mean()),
        "ms_a_move": own_time,
        "opponent_ms_a_move": other_time,
        "faults": match.faults[0],
        "opponent_faults": match.faults[1],
    }


def command(parser: argparse.ArgumentParser) -> Run:
    """``bao match``: play a player against opponents in paired games."""
    parser.add_argument("player", metavar="PLAYER", help="a checkpoint's path or name, or a bot")
    parser.add_argument(
        "opponents",
        nargs="*",
        default=["random", "greedy"],
        metavar="OPPONENT",
        help="another player; may be several (default: random greedy)",
    )
    parser.add_argument(
        "--pairs",
        type=at_least(1),
        default=1000,
        help="openings, each played from both seats (default: 1000)",
    )
    add_openings(parser)
    parser.add_argument(
        "--openings",
        metavar="FILE",
        help="draw the openings from this file instead; balanced names the shipped one",
    )
    parser.add_argument(
        "--sprt",
        type=float,
        nargs=2,
        metavar=("ELO0", "ELO1"),
        help="stop when a test (5 %% errors) has decided between these Elo differences",
    )
    add_options(parser, "seed", "threads", "json", "format", ruleset=None)
    parser.add_argument(
        "--games", type=new_file, metavar="FILE", help="also write every game as a transcript"
    )
    add_player_options(parser)
    return _run


def add_openings(parser: argparse.ArgumentParser) -> None:
    """Add the options ``--opening-plies`` and ``--balance`` to a parser."""
    parser.add_argument(
        "--opening-plies",
        type=at_least(0, most=MAX_OPENING_PLIES),
        default=OPENING_PLIES,
        help="random plies per opening (default: %(default)s)",
    )
    parser.add_argument(
        "--balance",
        type=float,
        default=BALANCE,
        help="largest value of an opening for either side, in logits (default: %(default)s)",
    )


def _run(args: argparse.Namespace) -> None:
    from bao_agents.support.progress import Progress  # play_match needs no tqdm

    sprt = Sprt(*args.sprt) if args.sprt else None
    ruleset = args.ruleset or ruleset_of(args.player) or get_ruleset("zanzibar")
    player, *opponents = (
        registry.load(name, ruleset=ruleset, seed=args.seed + i, threads=args.threads)
        for i, name in enumerate((args.player, *args.opponents))
    )
    if args.games:
        check_names(player.name, *(opponent.name for opponent in opponents))
    if args.openings:
        openings = read_openings(args.openings, ruleset, args.pairs, args.seed)
    else:
        openings = draw_openings(ruleset, args.pairs, args.opening_plies, args.seed, args.balance)
    for name in (args.player, *args.opponents):
        warm_up(name, ruleset)
    engine = Engine(ruleset)
    rows: list[tuple[str, Match]] = []
    try:
        for opponent in opponents:
            with Progress(total=2 * args.pairs, unit="game", desc=f"vs {opponent.name}") as bar:
                match = play_openings(
                    player, opponent, openings, engine, sprt=sprt, progress=bar.update
                )
            rows.append((opponent.name, match))
    finally:  # results from before an error or Ctrl-C are shown anyway
        if rows:
            _report(args, player.name, ruleset, sprt, rows)


def _report(
    args: argparse.Namespace,
    player: str,
    ruleset: Ruleset,
    sprt: Sprt | None,
    rows: list[tuple[str, Match]],
) -> None:
    """Print the results, and write the files that the options name."""
    from bao_agents.arena.report import markdown_table, result_table  # play_match needs no tabulate

    results = [result(name, match) for name, match in rows]
    if args.format:
        named = [{"player": player} | row for row in results]
        print(result_table(args.format, *table(rows), named))
    elif args.json != "-":
        source = f"balanced openings of {args.opening_plies} random\nplies"
        if args.openings:
            source = f"openings\nfrom {args.openings}"
        print(
            f"{player}, rule set {ruleset.name}: up to {args.pairs} {source}, each from both "
            f"seats, seed {args.seed}. Score "
            "and LOS in percent, processor ms a move;\nsecond lines: 95 % intervals, the "
            "opponent's time.\n"
        )
        print(markdown_table(*table(rows), style="simple"))
        for name, match in rows:
            for who, causes in zip((player, name), match.faults, strict=True):
                if causes:
                    print(f"against {name}, {who} {faults_text(causes)}")
        for name, match in rows:
            if sprt is not None:
                decided = {"H0": f"{sprt.elo0:+g} or less", "H1": f"{sprt.elo1:+g} or more"}
                verdict = decided.get(str(match.verdict), "not decided within these games")
                print(f"{name}: SPRT of {sprt.elo0:+g} against {sprt.elo1:+g} Elo: {verdict}")
    try:
        if args.games:
            texts = [text for name, m in rows for text in m.transcripts((player, name))]
            write_atomically(args.games, "\n".join(texts))
    finally:  # if the games cannot be written, the results can
        write_json(
            args.json,
            {
                "made_with": provenance(ruleset),
                "player": args.player,
                "ruleset": ruleset.to_dict(),
                "opening_plies": None if args.openings else args.opening_plies,
                "balance": None if args.openings else args.balance,
                "openings": args.openings,
                "seed": args.seed,
                "results": results,
            },
        )
