"""Run ``bao blunders``: measure how often players give won games away.

bao blunders greedy alphabeta:4 --ruleset kujifunza
bao blunders zanzibar guided:64n --json blunders.json
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bao_agents.arena.report import formatted, markdown_table, to_csv
from bao_agents.cli.options import (
    Run,
    add_options,
    add_player_options,
    warn,
    write_json,
    write_text,
)
from bao_agents.exact.blunders import Share, classify
from bao_agents.exact.solved_positions import SolvedPositions, find, shipped_won_positions
from bao_agents.players import registry
from bao_agents.players.fingerprint import fingerprint
from bao_agents.support.interrupts import signals_interrupt
from bao_agents.support.provenance import digest, facts, provenance


def percent(share: Mapping[str, float] | None) -> str:
    """Return a share as a cell of a table, with its interval in a second line."""
    if share is None:
        return ""
    rate, low, high = (100 * share[name] for name in Share._fields)
    return f"{rate:.1f}\n{low:.1f} to {high:.1f}"


def table(results: Sequence[dict[str, Any]]) -> tuple[list[str], list[list[str]]]:
    """Return the heads and rows of a table of the players; only JSON has the position classes."""
    head = ["player", "positions", "given away, %", "at risk", "given away at risk, %"]
    rows = []
    for result in results:
        counts = result["blunders"]["all"]["all"]
        row = [result["player"]]
        for name in ("moves", "choices"):
            row += [f"{counts[name]:,}", percent(counts[f"of_{name}"])]
        rows.append(row)
    return head, rows


def values(result: Mapping[str, Any]) -> dict[str, Any]:
    """Return the numbers of :func:`table` for one player, for CSV."""
    counts = result["blunders"]["all"]["all"]
    columns = ("moves", "choices", "mistakes")
    return {"player": result["player"]} | {name: counts[name] for name in columns}


def notes(results: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield a line for each player that had faults: they count as mistakes."""
    for result in results:
        if faults := result["faults"]:
            places = "1 position" if len(faults) == 1 else f"{len(faults):,} positions"
            yield (
                f"{result['player']} had faults in {places}, which count as mistakes where one is "
                f"possible: {faults[0]}"
            )


def command(parser: argparse.ArgumentParser) -> Run:
    """Define ``bao blunders``: how often players give away games that are proven to be won."""
    parser.add_argument("players", nargs="+", metavar="PLAYER", help="a checkpoint or a bot")
    parser.add_argument(
        "--positions",
        metavar="FILE",
        help="solved positions, made by bao solve --sample (default: the positions shipped for the "
        "rules)",
    )
    add_options(parser, "ruleset", "seed", "threads", "json", "csv", "format")
    add_player_options(parser)
    return _run


@signals_interrupt()
def _run(args: argparse.Namespace) -> None:
    rules, file = args.ruleset, args.positions or args.ruleset.name
    solved = SolvedPositions.load(file, rules) if args.positions else shipped_won_positions(rules)
    if solved is None:
        raise ValueError(
            f"no solved positions are shipped for the rules {rules.name}: make some with bao solve "
            "--sample N --out FILE.npz and the same --ruleset, then --positions FILE.npz"
        )
    won = solved.won
    positions = f"{len(won)} of {file}, digest {digest(find(file))}"
    # All before the first move, because the file of one may change while another moves.
    players = [
        registry.load(spec, ruleset=rules, seed=args.seed, threads=args.threads)
        for spec in args.players
    ]
    fingerprints = [fingerprint(*names, rules) for names in zip(args.players, players, strict=True)]
    files = {spec: registry.parse(spec).file(rules) for spec in args.players}
    networks = {spec: network for spec, network in files.items() if network}
    record = provenance(rules, networks=networks, seed=args.seed, command=["bao", *args.words])
    results: list[dict[str, Any]] = []
    try:
        for spec, mark in zip(args.players, fingerprints, strict=True):
            player = players.pop(0)  # the memory of the one before is free then
            try:
                mistakes, faults = won.ask(player)
            except Exception as error:  # a player may raise anything
                raise ValueError(f"{spec} failed: {type(error).__name__}: {error}") from error
            blunders = {
                by: {name: counts.to_dict() for name, counts in classes.items()}
                for by, classes in classify(won, mistakes).items()
            }
            results.append(
                {
                    "player": player.name,
                    "spec": spec,
                    "fingerprint": mark,
                    "faults": faults,
                    "blunders": blunders,
                }
            )
    finally:  # Ctrl-C and errors leave the results of the players before
        if results:
            _report(args, record, positions, results, len(won))


def _report(
    args: argparse.Namespace,
    record: dict[str, Any],
    positions: str,
    results: Sequence[dict[str, Any]],
    count: int,
) -> None:
    """Write the files that the options name, and print the results.

    Args:
        args: the command's arguments.
        record: the provenance of the results.
        positions: which positions were asked, in words.
        results: the results of each player.
        count: the number of positions.
    """
    source = {"ruleset": args.ruleset.name, "positions": positions, **facts(record)}
    report = {
        "made_with": record,
        "ruleset": args.ruleset.to_dict(),
        "positions": positions,
        "seed": args.seed,
        "commit": record["commit"],
        "results": results,
    }
    write_json(args.json, report)
    write_text(args.csv, to_csv([values(row) for row in results], source))
    if args.format:
        caption = f"Won games given away, {args.ruleset.name}"
        print(formatted(args.format, *table(results), caption, source))
    elif "-" not in (args.json, args.csv):
        print(
            f"How often each player gives the win away in {count:,} won positions. A position\n"
            "is at risk if one of its moves gives the win away. Second lines: 95% intervals.\n\n"
            + markdown_table(*table(results), "simple")
        )
    warn(notes(results))
