"""Run ``bao solve``: prove who wins a position, or make a file of exact values."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bao_agents.arena.pools import LocalPool, RayPool
from bao_agents.cli.options import (
    Run,
    add_options,
    add_player_options,
    at_least,
    new_file,
    refuse_unused,
)
from bao_agents.exact import exact_values
from bao_agents.exact.exact_values import DatasetSettings, generate
from bao_agents.exact.proof_tree import Answers, ProofTree, continue_file, read_answers
from bao_agents.exact.resumable_search import ResumableSearch
from bao_agents.search.limits import MAX_NODES, Limit
from bao_agents.search.memory import check_memory
from bao_agents.search.solver.proof_number import UNKNOWN
from bao_agents.search.solver.solver import Solution, solve, table_bits
from bao_agents.support.files import hold_file
from bao_agents.support.interrupts import signals_interrupt
from bao_agents.support.output import say
from bao_agents.support.progress import Progress
from bao_env.board import Board
from bao_env.game import SEAT_NAMES
from bao_env.notation.positions import action_to_move

_SECONDS = 60.0
_SAMPLE_NODES = 300_000
_PIECE_NODES = 5_000_000
_SPLIT_NODES = 1_000_000
_PIECES = 20
"""The pieces of a proof share a table. It has space for the positions of this many pieces."""


def command(parser: argparse.ArgumentParser) -> Run:
    """Define ``bao solve``: prove who wins with perfect play, in one position or in many."""
    parser.add_argument(
        "position",
        nargs="?",
        help="the text of a position (RULES.md), in quotes (default: start, the opening)",
    )
    parser.add_argument(
        "--moves", nargs="*", default=[], metavar="MOVE", help="moves to play first"
    )
    parser.add_argument(
        "--seconds", type=at_least(0.001, float), help="time limit (default: 60, without --nodes)"
    )
    parser.add_argument(
        "--nodes",
        type=at_least(1),
        help="limit of visited positions; for each sampled position or piece, if there are any "
        f"(default: {_SAMPLE_NODES} with --sample, {_PIECE_NODES} with --pieces, and "
        f"{_SPLIT_NODES} with --pieces and --table)",
    )
    parser.add_argument("--shortest", action="store_true", help="find the shortest wins (slower)")
    add_options(parser, "ruleset", "threads")
    parser.add_argument(
        "--memory",
        type=at_least(1),
        metavar="MB",
        help="size of the table in megabytes (default: 10 bytes for each position of the limit, "
        "but at most a quarter of the free memory)",
    )
    parser.add_argument(
        "--table",
        type=new_file,
        metavar="FILE",
        help="keep the search in this file, and continue it from there, on one machine. It has no "
        "limit unless --seconds or --nodes sets one. The file is saved every half hour and at the "
        "end, also after Ctrl-C or SIGTERM. A save needs space for a second copy of the file",
    )
    many = parser.add_argument_group(
        "a file of exact values",
        f"The first {exact_values.CHUNK} positions come from random games, the next from games\n"
        f"between two searches, and so on in turns of {exact_values.CHUNK}. After a stop, the\n"
        "same command continues, and a larger N adds positions (both need FILE.parts).",
    )
    many.add_argument(
        "--sample",
        type=at_least(1),
        metavar="N",
        help="solve N sampled positions instead of POSITION",
    )
    many.add_argument(
        "--out",
        type=new_file,
        metavar="FILE",
        help="output file: .npz (all data) or .csv (for people)",
    )
    many.add_argument(
        "--plies",
        type=at_least(0),
        nargs=2,
        metavar=("LOW", "HIGH"),
        help="sample positions of these plies (default: from ten before the stores are empty)",
    )
    many.add_argument(
        "--players",
        nargs=2,
        default=exact_values.PLAYERS,
        metavar="PLAYER",
        help=f"players of the games between searches (default: {' '.join(exact_values.PLAYERS)})",
    )
    add_options(many, "seed")
    pieces = parser.add_argument_group(
        "a proof of many machines",
        "Unlike --table, this leaves a proof that others can check. The proof consists\n"
        "of searches of --nodes positions each. They run one after another on all\n"
        "cores, or side by side on the cores of a cluster, with 335 MB each. After a\n"
        "stop, the same command continues, on another machine too. With --table, too,\n"
        "the finished proof of the table is split into pieces.",
    )
    pieces.add_argument(
        "--pieces", type=new_file, metavar="FILE", help="the file in which each result is kept"
    )
    add_options(pieces, "ray")
    add_player_options(parser)
    return _run


@signals_interrupt()
def _run(args: argparse.Namespace) -> None:
    if (args.sample is None) != (args.out is None):
        raise ValueError("--sample N needs --out FILE, and --out FILE needs --sample N")
    try:
        if args.sample is not None:
            _sample(args)
        else:
            _prove(args)
    except KeyboardInterrupt:
        if args.out or args.pieces or args.table:
            raise KeyboardInterrupt("run the same command to continue") from None
        raise


def _sample(args: argparse.Namespace) -> None:
    """Write a file of exact values."""
    if args.position is not None:
        raise ValueError("POSITION has no effect with --sample: leave it out")
    refuse_unused(args, "with --sample", "moves", "seconds", "pieces", "ray", "memory", "table")
    lowest = max(0, 2 * args.ruleset.opening_store - exact_values.NAMUA_PLIES)
    plies = tuple(args.plies or (lowest, 999))
    nodes = args.nodes or _SAMPLE_NODES
    settings = DatasetSettings(
        args.ruleset, args.seed, nodes, plies, tuple(args.players), args.shortest
    )
    path = Path(args.out)
    print(exact_values.describe(path, generate(settings, args.sample, path, args.threads)))


def _prove(args: argparse.Namespace) -> None:
    """Print who wins a position."""
    refuse_unused(args, "without --sample", "plies", "players", "seed")
    board = Board.from_text(args.position or "start", args.ruleset)
    for move in args.moves:
        board.push(move)
    if args.pieces or args.table:
        option = "--table" if args.table else "--pieces"
        refuse_unused(args, f"with {option}", "shortest", "ray" if args.table else "seconds")
        if (outcome := board.outcome()) is not None:
            print(describe(Solution(outcome.winner, 0, True, (), 0)))
        elif args.table:
            _prove_with_table(board, args)
        else:
            _prove_in_pieces(board, args)
        return
    refuse_unused(args, "without --pieces", "ray")
    seconds = _SECONDS if args.seconds is None and args.nodes is None else args.seconds
    solution = solve(
        board,
        seconds=seconds,
        nodes=args.nodes,
        shortest=args.shortest,
        threads=args.threads,
        memory=args.memory,
    )
    print(describe(solution))


def _prove_with_table(board: Board, args: argparse.Namespace) -> None:
    """Print who wins a position, by a search that a file keeps; then split its proof if asked."""
    bits = table_bits(Limit(nodes=MAX_NODES), args.threads, check_memory(args.memory))
    most_nodes = None if args.pieces else args.nodes
    with hold_file(Path(args.table)) as file, _pieces(board, args) as pieces:
        search = ResumableSearch(board.ruleset, board.packed, file, bits, args.threads)
        try:
            with Progress(unit=" positions", unit_scale=True, initial=search.visited) as bar:
                for _ in search.run(seconds=args.seconds, nodes=most_nodes):
                    bar.set_postfix_str("numbers {:,} and {:,}".format(*search.numbers), False)
                    bar.update(search.visited - bar.n)
        except BaseException:
            say(f"saving {file}: another Ctrl-C loses the work since the last save")
            search.save()
            raise
        try:
            search.save()
        finally:  # a full disk must not hide a proof
            print(describe(search.solution()))
        if pieces and search.value != UNKNOWN:
            pieces_file, answers = pieces
            with (
                continue_file(pieces_file, board.ruleset, answers) as append,
                Progress(unit="answer", initial=len(answers)) as bar,
            ):
                for answer in search.split(args.nodes or _SPLIT_NODES, answers):
                    append(answer)
                    bar.update()


@contextmanager
def _pieces(board: Board, args: argparse.Namespace) -> Iterator[tuple[Path, Answers] | None]:
    """Hold the file of a proof in pieces, if there is one; yield it with its answers."""
    if args.pieces is None:
        yield None
        return
    with hold_file(Path(args.pieces)) as file:
        answers = read_answers(file, board.ruleset)
        ProofTree(board.ruleset, board.packed, answers).check_file(file)
        yield file, answers


def _prove_in_pieces(board: Board, args: argparse.Namespace) -> None:
    """Print who wins a position, and what is known about its moves."""
    with hold_file(Path(args.pieces)) as file:
        answers = read_answers(file, board.ruleset)
        tree = ProofTree(board.ruleset, board.packed, answers)
        tree.check_file(file)
        nodes = args.nodes or _PIECE_NODES
        # On this machine, one search uses all cores; on a cluster, each core has its own search.
        jobs: int = args.threads
        settings: tuple[int, ...] = (nodes,)
        if args.ray is not None:
            refuse_unused(args, "with --ray", "memory")
        else:
            bits = table_bits(Limit(nodes=_PIECES * nodes), 1, check_memory(args.memory))
            jobs, settings = 1, (nodes, bits, args.threads)
        pool = LocalPool(1) if args.ray is None else RayPool(args.ray)
        with pool, Progress(unit="piece", initial=len(answers)) as bar:
            for _ in tree.prove(file, pool, jobs, *settings):
                bar.set_postfix_str("numbers {:,} and {:,}".format(*tree.root.numbers))
                bar.update()
    visited = sum(answer.visited for answer in answers.values())
    print(describe(Solution(tree.root.winner, tree.root.plies, False, (), visited)))
    for action, after in zip(board.legal_actions, tree.root.after, strict=True):
        outcome = "unknown"
        if after.winner is not None:
            plies = _counted(after.plies + 1, "ply", "plies")
            outcome = f"{SEAT_NAMES[after.winner]} wins within {plies}"
        print(f"{action_to_move(action)}: {outcome}")


def describe(solution: Solution) -> str:
    """Return a solution in words: the winner, the number of plies, and a line in moves."""
    visited = _counted(solution.nodes, "position", "positions") + " visited"
    if solution.winner is None or solution.plies is None:
        return f"unknown ({visited})"
    winner = SEAT_NAMES[solution.winner]
    preposition = "in" if solution.is_shortest else "within"
    lines = [f"{winner} wins {preposition} {_counted(solution.plies, 'ply', 'plies')} ({visited})"]
    if solution.line:
        if len(solution.line) > solution.plies:
            lines.append("the moves of the first proof:")
        lines.append(" ".join(map(action_to_move, solution.line)))
    return "\n".join(lines)


def _counted(count: int, singular: str, plural: str) -> str:
    """Return a number with its noun, such as 1 ply or 2,000 plies."""
    return f"{count:,} {singular if count == 1 else plural}"
