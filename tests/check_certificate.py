"""Check the proof that the player who begins wins kujifunza, by the literal rules alone.

    python -m tests.check_certificate [FILE]

A certificate is a table with the columns ``position``, ``move`` and ``plies``, separated by tabs.
For each position that can arise on the winner's turn while they follow the table, it gives the move
to play and the most plies until the game ends. The check plays every reply to every move.

This file uses neither the engine nor the solver. The rules are those of ``tests/reference.py``, the
literal implementation that tests compare with the engine.
"""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

from tests.reference import OPPONENT, SOUTH, WINS, legal_moves, opening

SHIPPED = Path(__file__).parents[1] / "agents/bao_agents/search/solver/proofs/kujifunza.tsv"
"""The proof that comes with the package."""

KUJIFUNZA = SimpleNamespace(
    opening_front=(2,) * 8,
    opening_back=(2,) * 8,
    opening_store=0,
    house=False,
    house_min=6,
    house_lost_below_min=False,
    house_stops_mtaji_takasa=False,
    lone_house="front",
    singleton_takasa="house",
    capture_side="running",
    endelea_turns=False,
    capture_limit=15,
    lone_kichwa_takasa="loses",
    takasia="none",
    sow_limit=1000,
)
"""The rules of the learners' game, as ``tests/reference.py`` reads them."""


class CertificateError(ValueError):
    """Raised for a table that does not prove the win."""


class Entry(NamedTuple):
    """What the winner does in a position."""

    move: str
    plies: int
    """The most plies to the end of the game, including this move."""


class Proof(NamedTuple):
    """What a certificate proves."""

    winner: str
    """``S`` or ``N``."""
    plies: int
    """The most plies to the end of the game."""
    positions: int
    """The number of positions in which the winner is to move."""
    replies: int
    """The number of the loser's replies; all were played."""


def move_name(action: int) -> str:
    """Return an action as the mover names it: ``A6L``, ``B2R``."""
    row, number = divmod(action // 4, 8)
    return f"{'AB'[row]}{number + 1}{'LR'[action // 2 % 2]}{'>' * (action % 2)}"


def read(path: Path) -> dict[str, Entry]:
    """Return the entries of a certificate, by position.

    Raises:
        ValueError: the file is not such a table in ASCII.
    """
    head, *lines = path.read_text(encoding="ascii").splitlines()
    if head != "position\tmove\tplies":
        raise ValueError(f"{head!r}: expected the columns position, move and plies, with tabs")
    rows = [line.split("\t") for line in lines]
    return {position: Entry(move, int(plies)) for position, move, plies in rows}


def check(entries: dict[str, Entry]) -> Proof:
    """Play the certificate against every reply.

    Raises:
        CertificateError: it does not prove that the player who begins wins, or holds entries that
            the proof does not need.
    """
    first = opening(KUJIFUNZA, SOUTH)
    if first not in entries:
        raise CertificateError(f"the opening, {first!r}, is not listed")
    reached, todo, replies = {first}, [first], 0
    while todo:
        position = todo.pop()
        results = _results(position, entries[position].move)
        replies += len(results)
        following = {text for text in results if text not in WINS.values()}
        for text in sorted(following):
            if text not in entries:
                raise CertificateError(
                    f"{text!r} is not listed, but a reply to {entries[position].move} in "
                    f"{position!r} leads to it"
                )
        # Each is lower than the one before it, so no game goes on forever.
        plies = max([2 + entries[text].plies for text in following], default=2 if results else 1)
        if entries[position].plies != plies:
            raise CertificateError(
                f"{position!r}: expected {plies} plies, as its replies need, not "
                f"{entries[position].plies}"
            )
        todo += sorted(following - reached)
        reached |= following
    if surplus := entries.keys() - reached:
        raise CertificateError(
            f"the proof never reaches {len(surplus)} of the listed positions, such as "
            f"{min(surplus)!r}"
        )
    return Proof(SOUTH, entries[first].plies, len(entries), replies)


def _results(position: str, move: str) -> list[str]:
    """Return the position after each reply to the winner's move; an empty list if the move itself
    wins.

    Raises:
        CertificateError: the move is illegal, or the winner loses.
    """
    winner = position.split()[3]
    moves = {move_name(a): after for a, after in legal_moves(position, KUJIFUNZA).items()}
    if move not in moves:
        raise CertificateError(f"{position!r}: {move!r} is illegal; legal: {' '.join(moves)}")
    after = moves[move]
    results = [] if after in WINS.values() else list(legal_moves(after, KUJIFUNZA).values())
    if WINS[OPPONENT[winner]] in (after, *results):
        raise CertificateError(f"{position!r}: after {move} the other player can win")
    return results


def main(argv: list[str]) -> int:
    """Check the file given as an argument, or else the proof that comes with the package."""
    file = Path(argv[0]) if argv else SHIPPED
    try:
        proof = check(read(file))
    except (ValueError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(
        f"proved: whoever begins kujifunza wins within {proof.plies} plies "
        f"({proof.positions} positions, {proof.replies} replies)"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
