"""Write the rules of a rule set as one page of plain words.

The page is built from the switches of the rule set, so it also fits rule sets that you define.
``bao_env/RULES.md`` has the same rules by number, with their sources.
"""

from __future__ import annotations

from bao_env.engine.ruleset import NO_CAPTURE_LIMIT, Ruleset

_BOARD = """\
Bao is a game for two players, South and North.

BOARD. Each player owns 16 holes in two rows, and a store of seeds that are not yet on the board. \
South's front row is A1 to A8, and the row behind it B1 to B8. North's front row is a1 to a8, and \
the row behind it b1 to b8. All numbers count from the owner's left. The two front rows face each \
other: A1 faces a8, A2 faces a7, A3 faces a6, A4 faces a5, A5 faces a4, A6 faces a3, A7 faces a2, \
and A8 faces a1.
South's holes form this ring, and its end joins its start:
A1 A2 A3 A4 A5 A6 A7 A8 B8 B7 B6 B5 B4 B3 B2 B1
North's ring is the same in small letters. To sow is to drop the seeds in hand one by one into \
consecutive holes of your own ring, in one of its two directions. Seeds are captured from the \
opponent's front row, but nobody sows into the opponent's holes.
Below, "hole 1" to "hole 8" are those of the front row; 1 and 8 are called kichwa, 2 and 7 kimbi. \
A hole is filled if it has a seed.

START. Each player has 32 seeds. Front row: {front}; back row: {back}; store: {store}. {first}

END. You lose at once when your front row is empty, even in the middle of a move, or when it is \
your turn and you have no legal move. You also lose when you lift the last seeds of your front row \
and the next seed would go to the back row. There are no draws.

TURNS. A turn is a capture or a takasa. If you can begin with a capture, you must. Otherwise your \
turn is a takasa: it captures nothing, not even later in the same turn."""

_NAMUA = """\
NAMUA is the stage while your store has seeds.
- Capture: put one seed from your store into a filled front hole of yours that faces a filled \
hole. Lift all seeds of the facing hole and sow them from an end of your front row: the first seed \
goes into hole 1 or hole 8, the others along the row towards the other end. Sow from hole 1 if you \
capture at hole 1 or 2, from hole 8 if at hole 7 or 8; elsewhere you choose the end.
- Takasa: put one seed from your store into a filled front hole of yours, lift all seeds there and \
sow them from the next hole, in the direction that you choose. For what follows, seeds are counted \
before the one from the store.{house} You may start from a hole with a single seed only if \
{unless}.{lone}"""

_HOUSE_TAKASA = """ While you own your house and it has {least} seeds or more, you may start \
from it only if it is your only filled {alone}. Then you lift only two of its seeds and keep the \
house."""
_LONE_HOUSE_IS_A_HOLE = """ If it is your only filled front hole but your back row is not empty, \
it is an ordinary hole."""
_LONE_KICHWA = """ If hole 1 or 8 is your only filled front hole, it may not go towards the back \
row."""

_MTAJI = """\
MTAJI is the stage when your store is empty{always}.
- Capture: lift all seeds of a hole of yours, in either row, that has {seeds}, and sow them from \
the next hole. This is a capture if the last seed of this first sowing falls into a filled front \
hole of yours that faces a filled hole.
- Takasa: lift all seeds of a front hole with two seeds or more and sow them from the next hole. \
Only if there is no such front hole, start from a back hole with two seeds or more.{lone}

GOING ON. Look at the hole where the last seed of a sowing fell.
- If it was empty before, the move ends.
- If it was filled, the turn is a capture, and it is a front hole that faces a filled hole, you \
capture there. Lift the seeds of the facing hole and sow them from an end of your front row: from \
hole 1 if you capture at hole 1 or 2, from hole 8 if at hole 7 or 8. At other holes{free} keep the \
direction: from hole 1 if you were sowing from lower to higher numbers of the front row, else from \
hole 8.
- Otherwise lift all seeds of the hole, the last one included, and sow them on from the next hole \
in the same direction.{turns}{ends}
A move that puts down more than {limit} seeds is illegal."""

_FREE_SIDE = """, in namua, you choose the end: your turn pauses there, and your next move names \
the end. In mtaji"""
_ENDELEA_TURNS = """ But if the turn is a capture, seeds lifted at hole 1 or 2 are sown towards \
hole 8, and those lifted at hole 7 or 8 towards hole 1."""

_ENDS = " The rules below may end the move instead."

_HOUSE = """\
HOUSE. Hole 5 is your house, and you own it at the start. You lose it when you lift all its \
seeds or the opponent captures them{lost}. The first capture in mtaji, by either player, ends both \
houses. A house that has ended is an ordinary hole for good. In namua, when a sowing \
ends in your own house, which then has {least} seeds or more, and captures nothing there, a takasa \
ends. In a capture you choose: end the move there, or play the house, which is to lift all its \
seeds and sow on. In mtaji the house is an ordinary hole{stops}."""

_TAKASIA = {
    "dutch": """\
TAKASIA. When you must make a takasa in mtaji and may choose between two holes or more, and the \
opponent, if it were their turn now, could begin a capture of exactly one of your holes, you may \
not start from that hole.""",
    "zanzibar": """\
TAKASIA. A takasa in mtaji may bar a hole of the next player. It does so if the next player cannot \
capture, and the player who made the takasa, if it were their turn again, could begin a capture of \
exactly one hole. The next player may not start from that hole, and their takasa ends when a \
sowing of it ends there. {house} only filled front hole, and the only front hole with two seeds or \
more are never barred{spared}.""",
}

_NAMES = """\
NAMING A MOVE. Name the hole where you start, then the direction in which the first seed goes as \
you see it: L to the left, towards lower numbers, or R to the right: "A3L" sows into A2 first, \
"A3R" into A4. At the end of a row the ring turns: "A1L" sows into B1, "B8R" into A8. North may \
write A and B for a and b."""
_NAMES_ENDS = """ When you capture in namua, L means that the captured seeds are sown from hole 1, \
R from hole 8."""
_NAMES_HOUSE = """ A move ends at your house where you have the choice; to play it, add ">": \
"A4L>"."""


def rules_in_words(ruleset: Ruleset) -> str:
    """Return the rules as a page of plain words, without a line break at the end."""
    sections = [_board(ruleset)]
    if ruleset.opening_store:
        sections.append(_namua(ruleset))
    sections.append(_mtaji(ruleset))
    if ruleset.house:
        sections.append(_house(ruleset))
    if ruleset.takasia != "none":
        house = "A house that is still owned, the" if ruleset.house else "The"
        spared = ", nor is a hole with a single seed" if ruleset.takasia_spares_singletons else ""
        sections.append(_TAKASIA[ruleset.takasia].format(house=house, spared=spared))
    sections.append(_names(ruleset))
    return "\n\n".join(sections)


def _board(ruleset: Ruleset) -> str:
    """Return the sections that all games have, from the board to the turns."""
    begins = "South begins."
    if ruleset.first_player != "south":
        begins = "The player who begins is drawn at random."
    return _BOARD.format(
        front=_row(ruleset.opening_front),
        back=_row(ruleset.opening_back),
        store=ruleset.opening_store,
        first=begins,
    )


def _namua(ruleset: Ruleset) -> str:
    """Return the section about namua."""
    unless = "no front hole has more"
    if ruleset.house and ruleset.singleton_takasa == "singletons":
        unless += f", apart from a house of {ruleset.house_min} or more that you own"
    elif ruleset.house:
        unless += ", or you still own your house"
    return _NAMUA.format(house=_house_takasa(ruleset), unless=unless, lone=_lone_kichwa(ruleset))


def _house_takasa(ruleset: Ruleset) -> str:
    """Return the sentences about a takasa from the house in namua; none without houses."""
    if not ruleset.house:
        return ""
    if ruleset.lone_house == "side":
        text = _HOUSE_TAKASA.format(least=ruleset.house_min, alone="hole in both rows")
        return text + _LONE_HOUSE_IS_A_HOLE
    return _HOUSE_TAKASA.format(least=ruleset.house_min, alone="front hole")


def _lone_kichwa(ruleset: Ruleset) -> str:
    """Return the sentence about a takasa from a lone kichwa, if the rules forbid it."""
    return _LONE_KICHWA if ruleset.lone_kichwa_takasa == "illegal" else ""


def _mtaji(ruleset: Ruleset) -> str:
    """Return the sections about mtaji and about going on after a sowing."""
    seeds = f"2 to {ruleset.capture_limit} seeds"
    if ruleset.capture_limit == NO_CAPTURE_LIMIT:
        seeds = "two seeds or more"
    has_further_ends = ruleset.house or ruleset.takasia == "zanzibar"
    return _MTAJI.format(
        always="" if ruleset.opening_store else ", here the whole game",
        seeds=seeds,
        lone=_lone_kichwa(ruleset),
        free=_FREE_SIDE if ruleset.capture_side == "free" else "",
        turns=_ENDELEA_TURNS if ruleset.endelea_turns else "",
        ends=_ENDS if has_further_ends else "",
        limit=ruleset.sow_limit,
    )


def _house(ruleset: Ruleset) -> str:
    """Return the section about the house."""
    lost = stops = ""
    if ruleset.house_lost_below_min:
        lost = " or it falls below its minimum"
    if ruleset.house_stops_mtaji_takasa:
        stops = (
            ", but a takasa also ends in it if it is yours and has "
            f"{ruleset.house_min} seeds or more"
        )
    return _HOUSE.format(lost=lost, least=ruleset.house_min, stops=stops)


def _names(ruleset: Ruleset) -> str:
    """Return the section about the names of moves."""
    text = _NAMES
    if ruleset.opening_store:
        text += _NAMES_ENDS
        if ruleset.house:
            text += _NAMES_HOUSE
    return text


def _row(counts: tuple[int, ...]) -> str:
    """Return the seeds of a row in words."""
    if len(set(counts)) == 1:
        return f"{counts[0]} in every hole"
    return ", ".join(f"{count} in hole {hole}" for hole, count in enumerate(counts, 1) if count)
