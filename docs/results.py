"""Measure tables of the pages: ``python docs/results.py [TABLE ...]``, by default all of them.

The results of finished parts are kept in a folder, so that a run that was stopped, even by SIGKILL,
goes on where it was. Results of another commit, command or shipped file are not used. A commit must
name the code: without Git, or with changes that are not committed, nothing is measured. ``--list``
prints the parts, and how long those that are missing take on one core.

A table is printed with what made it: commit, digests, machine, packages and commands. ``--write``
also puts it on its page, between ``<!-- measured TABLE -->`` and ``<!-- end -->``.
"""

from __future__ import annotations

import argparse
import json
import re
import shlex
import sys
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / folder) for folder in ("", "agents", "training")]

import bao_agents  # noqa: E402  (it needs the path above)
from bao_agents.arena.resumable import read_part  # noqa: E402
from bao_agents.cli.main import report_errors  # noqa: E402
from bao_agents.support.files import hold, write_atomically  # noqa: E402
from bao_agents.support.output import say  # noqa: E402
from bao_agents.support.provenance import UNKNOWN, current_commit, facts, provenance  # noqa: E402
from bao_env.engine.ruleset import RULESETS  # noqa: E402
from docs.measurements import TABLES, Part, Table  # noqa: E402

PAGES = sorted(ROOT.glob("*/*.md"))
_END = "<!-- end -->"


def shipped_file(name: str) -> Path:
    """Return the file of a name on the pages: ``guides/kibao``, ``evaluators/tables.npz``."""
    folder = Path(bao_agents.__file__).parent
    return folder / name if "." in name else folder / "checkpoints" / f"{name}.safetensors"


def _read_result(file: Path) -> dict[str, Any]:
    """Return the result of a part and what made it.

    Raises:
        ValueError: the file is damaged.
    """
    kept = json.loads(file.read_bytes())
    if not isinstance(kept, dict) or kept.keys() != {"made_with", "result"}:
        raise ValueError(f"{file} is not a result")
    return kept


class Results:
    """The results of the parts of a table that are finished.

    Args:
        name: the name of the table.
        table: the table.
        folder: the folder of all results; those of each commit have a folder there.
    """

    def __init__(self, name: str, table: Table, folder: Path) -> None:
        self.name, self.table = name, table
        self.folder = (folder / current_commit() / name).absolute()

    def _record(self, part: Part) -> dict[str, Any]:
        """Return what makes a part that is measured now."""
        files = {name: shipped_file(name) for name in self.table.files}
        command = shlex.split(part.command)
        return provenance(RULESETS["zanzibar"], networks=files, command=command)

    def _file(self, part: Part) -> Path:
        return self.folder / f"{self.table.parts.index(part)}.json"

    def kept(self, part: Part) -> dict[str, Any] | None:
        """Return the result of a part and what made it; None if it has to be measured."""
        kept = read_part(self._file(part), _read_result)
        if kept is None:
            return None
        record, made_with = self._record(part), kept["made_with"]
        names = ("command", "networks")  # the folder has the commit
        return kept if all(made_with.get(name) == record.get(name) for name in names) else None

    def missing(self) -> list[Part]:
        """Return the parts that have to be measured."""
        return [part for part in self.table.parts if self.kept(part) is None]

    def measure(self) -> None:
        """Measure the missing parts.

        Raises:
            HeldError: another process measures this table.
        """
        with hold(self.folder, "*.json"):
            for part in self.missing():
                say(f"{self.name}: {part.command}, about {part.minutes:g} minutes")
                made_with = self._record(part)
                result = {"made_with": made_with, "result": part.measure(self.folder)}
                write_atomically(self._file(part), json.dumps(result, indent=1))

    def markdown(self) -> str:
        """Return the measured table and its head as Markdown, with the markers around them."""
        parts = self.table.parts
        kept = [result for part in parts if (result := self.kept(part)) is not None]
        heads, *rows = self.table.lines([part["result"] for part in kept])
        lines = [f"| {' | '.join(cells)} |".replace("  ", " ") for cells in (heads, *rows)]
        lines.insert(1, f"|---{'|---:' * (len(heads) - 1)}|")
        head = head_of(self.name, self.table, [part["made_with"] for part in kept])
        return "\n\n".join([f"<!-- measured {self.name} -->", head, "\n".join(lines), _END])


def head_of(name: str, table: Table, records: Sequence[Mapping[str, Any]]) -> str:
    """Return what made a table in words.

    Args:
        name: the name of the table.
        table: the table.
        records: the :func:`~bao_agents.support.provenance.provenance` of its parts.
    """
    texts = [facts(record) for record in records]
    made = {
        key: "; ".join(sorted({text[key] for text in texts}))
        for key in ("commit", "machine", "versions")
    }
    digests = records[0].get("networks", {}) if records else {}
    files = [f"`{file}` `{digest}`" for file, digest in digests.items()]
    first, *others = [part.command for part in table.parts]
    more = f" and {len(others)} more" if others else ""
    words = ", ".join([f"Commit `{made['commit']}`", *files, made["machine"], made["versions"]])
    text = f"{words}. `python docs/results.py {name}` ran `{first}`{more}:"
    whole_spans = re.sub("`[^`]*`", lambda span: span[0].replace(" ", "\0"), text)
    wrapped = textwrap.fill(whole_spans, 120, break_long_words=False, break_on_hyphens=False)
    return wrapped.replace("\0", " ")


def with_table(page: str, name: str, text: str) -> str:
    """Return a page with a new table in place of the old one, markers included.

    Raises:
        ValueError: the old table has no end.
    """
    before, marker, after = page.partition(f"<!-- measured {name} -->\n")
    if not marker:
        return page
    old, end, after = after.partition(_END)
    if not end or "<!-- measured " in old:
        raise ValueError(f"there is no {_END} after {marker.strip()}")
    return before + text + after


def main() -> None:
    """Measure, print and write tables, or list their parts."""
    parser = argparse.ArgumentParser(description="Measure tables of the pages.")
    parser.add_argument("tables", nargs="*", metavar="TABLE", help="default: all of them")
    parser.add_argument("--list", action="store_true", help="measure nothing, and list the parts")
    parser.add_argument("--write", action="store_true", help="also put the tables on their pages")
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("runs/results"),
        metavar="FOLDER",
        help="where the results are kept (default: %(default)s)",
    )
    args = parser.parse_args()
    if unknown := set(args.tables) - set(TABLES):
        parser.error(f"{', '.join(unknown)}: there are {', '.join(TABLES)}")
    selected = [Results(name, TABLES[name], args.out) for name in args.tables or TABLES]
    total = 0.0
    for results in selected:
        parts, missing = results.table.parts, results.missing()
        minutes = sum(part.minutes for part in missing)
        total += minutes
        say(f"{results.name}: {len(missing)} of {len(parts)} parts missing, {minutes:g} minutes")
        for part in parts if args.list else ():
            say(f"  {'missing' if part in missing else 'kept'}: {part.command}")
    say(f"about {total / 60:.1f} hours of one core")
    if args.list:
        return
    if current_commit() == UNKNOWN or current_commit().endswith("-dirty"):
        parser.error("no commit names this code: commit your changes, then measure")
    for name in [results.name for results in selected] if args.write else ():  # before hours
        texts = [page.read_text(encoding="utf-8") for page in PAGES]
        if texts == [with_table(text, name, "") for text in texts]:
            say(f"{name}: no page has <!-- measured {name} -->, so the table is only printed")
    for results in selected:
        try:
            results.measure()
        except KeyboardInterrupt:
            raise KeyboardInterrupt("run the same command to continue") from None
        text = results.markdown()
        print(text)
        for page in PAGES if args.write else ():
            old = page.read_text(encoding="utf-8")
            if (new := with_table(old, results.name, text)) != old:
                write_atomically(page, new)


if __name__ == "__main__":
    sys.exit(report_errors(main))
