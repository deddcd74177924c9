"""Write and print the results of an event: on a terminal, in files, and as a picture."""

from __future__ import annotations

import argparse
from collections.abc import Container, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from typing import Any, NamedTuple

from bao_agents.arena.event import Event
from bao_agents.arena.pairs import Pairs
from bao_agents.arena.report import (
    CROSSTABLE,
    Row,
    Table,
    cells,
    escaped,
    formatted,
    markdown_table,
    notes,
    plot,
    to_csv,
)
from bao_agents.cli.options import warn, write_json, write_text
from bao_agents.players import registry
from bao_agents.support.figures import try_to_save_figure
from bao_agents.support.files import write_atomically
from bao_agents.support.provenance import facts, provenance


class Report(NamedTuple):
    """A command's report on the games that were played."""

    subject: str
    """The start of the table's caption: who is measured, or on which ladder."""
    rows: Sequence[Row]
    """The results."""
    columns: Sequence[str]
    """The table's columns, by their keys in the rows; the first column has the players."""
    zero: str
    """The player or average that has Elo 0, in words."""
    source: Mapping[str, str]
    """How the results were made, in addition to the provenance."""
    facts: Mapping[str, Any]
    """More entries for JSON."""
    before: str
    """The text above the table."""
    after: str = ""
    """The text below the table."""
    cross: Table | None = None
    """The scores of all players against each other, to show below the table."""
    remarks: Sequence[str] = ()
    """Warnings and notes for a reader."""
    table: Table | None = None
    """The table to show; by default the columns of all rows."""
    style: str = "simple"
    """The table's style on a terminal, a format of tabulate."""


def show(
    args: argparse.Namespace,
    event: Event,
    games: Pairs,
    report: Report,
    record: dict[str, Any],
    limits: Mapping[str, float],
) -> None:
    """Write the files that the options name, and print the results.

    Args:
        args: the command's arguments.
        event: the event.
        games: all games that were played.
        report: the report on these games.
        record: the provenance of the games of all players.
        limits: the result of :func:`~bao_agents.arena.report.limit_ms` for each player, by name.
    """
    names = {row[name] for row in report.rows for name in ("player", "opponent") if name in row}
    players = {name: spec for name, spec in event.players.items() if name in names}
    record = of_players(record, players)
    source = {
        **report.source,
        "zero": report.zero,
        "ruleset": event.ruleset.name,
        **facts(record),
        "commit": ", ".join(sorted(games.commits)),
    }
    document = {
        "made_with": record,
        "players": players,
        "ruleset": event.ruleset.to_dict(),
        "seed": args.seed,
        "commits": sorted(games.commits),
        "zero": report.zero,
        **report.facts,
        "results": report.rows,
    }
    title = f"{report.subject}, {event.ruleset.name}"
    table = cells(report.rows, report.columns)
    remarks = [*report.remarks, *notes(report.rows, limits, games.commits)]

    with ExitStack() as steps:  # run in reverse order, each even if another one fails
        if args.out:
            draw = partial(plot, report.rows, report.columns[0], title, report.zero)
            steps.callback(try_to_save_figure, draw, args.out / "elo.png", title, source)
        if "-" in (args.json, args.csv):
            steps.callback(warn, remarks)
        elif args.format:
            steps.callback(warn, remarks)
            caption = f"{title}; Elo 0 is {report.zero}"
            steps.callback(print, formatted(args.format, *table, caption, source, report.cross))
        else:
            steps.callback(print, _text(report, remarks, report.style))
        steps.callback(write_text, args.csv, to_csv(report.rows, source))
        steps.callback(write_json, args.json, document)
        if args.games:
            steps.callback(write_atomically, args.games, "\n".join(games.games))
        if args.out:
            text = _text(report, remarks, "pipe")
            steps.callback(write_atomically, args.out / "table.md", text + "\n")
            steps.callback(write_json, str(args.out / "table.json"), document)


def _text(report: Report, remarks: Sequence[str], style: str) -> str:
    """Return a report's tables, the texts around them, and the remarks.

    Args:
        report: the report.
        remarks: its own remarks, and the notes on the games.
        style: the format of tables, one of tabulate's.
    """
    table = report.table or cells(report.rows, report.columns)
    cross = [f"{CROSSTABLE}:", markdown_table(*report.cross, style)] if report.cross else []
    lines = "\n".join(remarks if style == "simple" else map(escaped, remarks))
    parts = [report.before, markdown_table(*table, style), report.after, *cross, lines]
    return "\n\n".join(filter(None, parts))


def record_of(args: argparse.Namespace, event: Event) -> dict[str, Any]:
    """Return the provenance of an event's games, with the networks as their files are now."""
    rules = event.ruleset
    files = {name: registry.parse(spec).file(rules) for name, spec in event.players.items()}
    networks = {name: file for name, file in files.items() if file}
    return provenance(rules, networks=networks, seed=args.seed, command=["bao", *args.words])


def of_players(record: dict[str, Any], names: Container[str]) -> dict[str, Any]:
    """Return a provenance without the networks of other players."""
    networks = {name: mark for name, mark in record.get("networks", {}).items() if name in names}
    anonymous = {key: entry for key, entry in record.items() if key != "networks"}
    return anonymous | ({"networks": networks} if networks else {})
