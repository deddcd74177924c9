"""Play Bao slowly and literally: a second implementation that tests compare with the fast engine.

Read this file first to learn how the rules become code. It is written from ``bao_env/RULES.md`` and
the rule sheets named there, one branch for each rule, with the rule's number beside it ("Donkers
2.4b", "kibao 1.6.2"). Seeds are put down one at a time, holes have names, and nothing is packed or
precomputed except the geometry of the board. The aim is to be obviously right, not fast.

Holes. ("A", 3) is the third front hole of South counted from South's own left, ("b", 3) the
third back hole of North counted from North's own left. Seen by its owner each side is this
ring, and "clockwise" runs along the arrows:

        front   1 > 2 > 3 > 4 > 5 > 6 > 7 > 8
                ^                           v
        back    1 < 2 < 3 < 4 < 5 < 6 < 7 < 8

Front hole n faces the opponent's front hole 9 - n.

The rule set comes in as an object with plain attributes:

    opening_front, opening_back, opening_store    seeds of each player at the start
    house                      whether hole 5 is a house at all
    house_min                  fewest seeds with which an owned house acts as a house
    house_lost_below_min       an owned house that falls below the minimum ends for good
    house_stops_mtaji_takasa   a takasa also stops at the owned, full house in mtaji
    lone_house                 "front": the two-seed takasa when the house is alone in the front
                               row; "side": only when it is alone in both rows
    singleton_takasa           "house" or "singletons": when a hole with one seed may start
    capture_side               "running" or "free": how later captures of namua choose a side
    endelea_turns              endelea of a capture move turns inward at a kichwa or kimbi
    capture_limit              most seeds a capture in mtaji may start with
    lone_kichwa_takasa         "illegal" or "loses": a lone kichwa played to the back row
    takasia                    "zanzibar", "dutch" or "none"
    takasia_spares_singletons  takasia never bars a hole with one seed
    sow_limit                  most seeds one move may put down
"""

from dataclasses import dataclass
from typing import Any

Hole = tuple[str, int]
Start = tuple[Hole, str]
"""Where a move starts: a hole, and the direction in which the first seeds of the hand go."""

SOUTH, NORTH = "S", "N"
OPPONENT = {SOUTH: NORTH, NORTH: SOUTH}

FRONT: dict[str, list[Hole]] = {
    SOUTH: [("A", number) for number in range(1, 9)],
    NORTH: [("a", number) for number in range(1, 9)],
}
BACK: dict[str, list[Hole]] = {
    SOUTH: [("B", number) for number in range(1, 9)],
    NORTH: [("b", number) for number in range(1, 9)],
}
SIDE: dict[str, list[Hole]] = {player: FRONT[player] + BACK[player] for player in (SOUTH, NORTH)}
FRONT_HOLES: set[Hole] = {*FRONT[SOUTH], *FRONT[NORTH]}
HOUSE: dict[str, Hole] = {SOUTH: ("A", 5), NORTH: ("a", 5)}

FACING: dict[Hole, Hole] = {}
for _number in range(1, 9):
    FACING["A", _number] = ("a", 9 - _number)
    FACING["a", 9 - _number] = ("A", _number)

CLOCKWISE, ANTICLOCKWISE = "clockwise", "anti-clockwise"
NEXT: dict[str, dict[Hole, Hole]] = {CLOCKWISE: {}, ANTICLOCKWISE: {}}
for _player in (SOUTH, NORTH):
    _ring = FRONT[_player] + BACK[_player][::-1]
    for _here, _there in zip(_ring, _ring[1:] + _ring[:1], strict=True):
        NEXT[CLOCKWISE][_here] = _there
        NEXT[ANTICLOCKWISE][_there] = _here

WINS = {SOUTH: "S wins", NORTH: "N wins"}


def is_kichwa(hole: Hole) -> bool:
    """Return whether a hole is one of the two ends of a front row."""
    return hole in FRONT_HOLES and hole[1] in (1, 8)


def forced_direction(hole: Hole) -> str | None:
    """Return the forced direction of captured seeds at a kichwa or kimbi, else None."""
    if hole[1] in (1, 2):
        return CLOCKWISE
    if hole[1] in (7, 8):
        return ANTICLOCKWISE
    return None


def kichwa_to_sow_from(player: str, direction: str) -> Hole:
    """Return the kichwa at which a sowing of captured seeds begins."""
    # Donkers 1.4a: clockwise from the left kichwa, anti-clockwise from the right one.
    return FRONT[player][0] if direction == CLOCKWISE else FRONT[player][7]


# --- positions as text ------------------------------------------------------------------------


@dataclass
class Position:
    """A position as counts of seeds and flags."""

    holes: dict[Hole, int]
    stores: dict[str, int]
    owned: dict[str, bool]
    """Whether each player still owns the house."""
    mover: str
    barred: Hole | None = None
    """The mover's hole under takasia."""
    pending: Hole | None = None
    """The mover's hole where a capture waits for its side."""
    sown: int = 0
    """Seeds put down so far in a move that waits for a side."""


def own_hole(player: str, name: str) -> Hole:
    """Return the hole that a player calls ``name``, always spelled with a capital: A3, B8."""
    row = name[0] if player == SOUTH else name[0].lower()
    return (row, int(name[1:]))


def parse(text: str, rules: Any) -> Position:
    """Read a position text of five or six fields."""
    fields = text.split()
    holes = {}
    for row, numbers in zip("ABab", fields[0].split("/"), strict=True):
        for number, seeds in enumerate(numbers.split(","), start=1):
            holes[row, number] = int(seeds)
    south, north = fields[1].split(",")
    mover = fields[3]
    position = Position(
        holes=holes,
        stores={SOUTH: int(south), NORTH: int(north)},
        owned={player: rules.house and player in fields[2] for player in (SOUTH, NORTH)},
        mover=mover,
    )
    if fields[4] != "-":
        position.barred = own_hole(mover, fields[4])
    if len(fields) == 6:
        name, sown = fields[5].split(":")
        position.pending = own_hole(mover, name)
        position.sown = int(sown)
    return position


def write(position: Position) -> str:
    """Return the position as text; the inverse of :func:`parse`."""
    rows = [[str(position.holes[row, number]) for number in range(1, 9)] for row in "ABab"]
    board = "/".join(map(",".join, rows))
    stores = f"{position.stores[SOUTH]},{position.stores[NORTH]}"
    houses = "".join(player for player in (SOUTH, NORTH) if position.owned[player]) or "-"
    barred = "-"
    if position.barred is not None:
        barred = f"{position.barred[0].upper()}{position.barred[1]}"
    text = f"{board} {stores} {houses} {position.mover} {barred}"
    if position.pending is not None:
        text += f" {position.pending[0].upper()}{position.pending[1]}:{position.sown}"
    return text


def opening(rules: Any, first_player: str = SOUTH) -> str:
    """Return the text of the position in which a game begins."""
    # Donkers 2.1: both sides alike, each house owned if there are houses at all.
    holes: dict[Hole, int] = {}
    for player in (SOUTH, NORTH):
        holes.update(zip(FRONT[player], rules.opening_front, strict=True))
        holes.update(zip(BACK[player], rules.opening_back, strict=True))
    return write(
        Position(
            holes=holes,
            stores=dict.fromkeys((SOUTH, NORTH), rules.opening_store),
            owned=dict.fromkeys((SOUTH, NORTH), rules.house),
            mover=first_player,
        )
    )


# --- which holes may start --------------------------------------------------------------------


def in_namua(position: Position, player: str) -> bool:
    """Return whether a player still has seeds in store (Donkers 2.2)."""
    return position.stores[player] > 0


def filled_front(position: Position, player: str) -> list[Hole]:
    """Return the player's front holes that hold at least one seed."""
    return [hole for hole in FRONT[player] if position.holes[hole] > 0]


def house_is_full(position: Position, player: str, rules: Any) -> bool:
    """Return whether the player owns the house and it holds at least the minimum."""
    return position.owned[player] and position.holes[HOUSE[player]] >= rules.house_min


def namua_captures(position: Position, player: str, rules: Any) -> list[Start]:
    """Return the captures that a player could start with a seed from the store."""
    starts: list[Start] = []
    for hole in FRONT[player]:
        # Donkers 2.3: a filled front hole that faces a filled hole.
        if position.holes[hole] > 0 and position.holes[FACING[hole]] > 0:
            forced = forced_direction(hole)
            if forced is not None:
                # Donkers 1.4b: kichwa and kimbi leave no choice of side.
                starts.append((hole, forced))
            else:
                # Donkers 2.3b: elsewhere the player chooses the side.
                starts += [(hole, CLOCKWISE), (hole, ANTICLOCKWISE)]
    return starts


def first_sowing_captures(position: Position, hole: Hole, direction: str) -> Hole | None:
    """Return the hole captured if the seeds of ``hole`` were sown once, or None."""
    holes = dict(position.holes)
    seeds, holes[hole] = holes[hole], 0
    was_empty = False
    for _ in range(seeds):
        hole = NEXT[direction][hole]
        was_empty = holes[hole] == 0
        holes[hole] += 1
    # Donkers 1.4: a non-empty front hole (before its last seed) that faces a filled hole.
    if not was_empty and hole in FRONT_HOLES and holes[FACING[hole]] > 0:
        return FACING[hole]
    return None


def mtaji_captures(position: Position, player: str, rules: Any) -> dict[Start, Hole]:
    """Return the captures that could start from the board, each with the hole it would capture."""
    starts: dict[Start, Hole] = {}
    for hole in SIDE[player]:
        # Donkers 3.4: more than one seed and fewer than 16. (The Dutch sheet has no upper limit.)
        if 2 <= position.holes[hole] <= rules.capture_limit:
            for direction in (CLOCKWISE, ANTICLOCKWISE):
                captured = first_sowing_captures(position, hole, direction)
                if captured is not None:
                    starts[hole, direction] = captured
    return starts


def captures(position: Position, player: str, rules: Any) -> list[Start]:
    """Return the captures that a player could start in this position, whoever is to move."""
    if in_namua(position, player):
        return namua_captures(position, player, rules)
    return list(mtaji_captures(position, player, rules))


def threatened_holes(position: Position, player: str, rules: Any) -> set[Hole]:
    """Return the player's holes that the opponent could capture first if it were their turn."""
    opponent = OPPONENT[player]
    if in_namua(position, opponent):
        return {FACING[hole] for hole, _ in namua_captures(position, opponent, rules)}
    return set(mtaji_captures(position, opponent, rules).values())


def both_ways(position: Position, player: str, holes: list[Hole], rules: Any) -> list[Start]:
    """Return takasa starts from these holes in both directions, except from a lone kichwa."""
    starts: list[Start] = []
    for hole in holes:
        for direction in (CLOCKWISE, ANTICLOCKWISE):
            # Donkers 2.4a, 3.5b: a kichwa that is the only filled front hole is not played
            # toward the back row. In kujifunza it may be, and loses (deepblao).
            if (
                rules.lone_kichwa_takasa == "illegal"
                and is_kichwa(hole)
                and filled_front(position, player) == [hole]
                and NEXT[direction][hole] not in FRONT_HOLES
            ):
                continue
            starts.append((hole, direction))
    return starts


def singleton_may_start(position: Position, player: str, rules: Any) -> bool:
    """Return whether a front hole with one seed may start a takasa in namua."""
    if rules.singleton_takasa == "house":
        # Donkers 2.4c: yes, while the house is owned (with however few seeds) ...
        if position.owned[player]:
            return True
        # ... or if no front hole holds more than one.
        return all(position.holes[hole] <= 1 for hole in FRONT[player])
    # Dutch I.b: only if every other front hole, except the full house, is also a singleton.
    for hole in filled_front(position, player):
        if hole == HOUSE[player] and house_is_full(position, player, rules):
            continue
        if position.holes[hole] > 1:
            return False
    return True


def namua_takasas(position: Position, player: str, rules: Any) -> list[Start]:
    """Return the takasa starts of a player who has seeds in store and no capture."""
    may_start = []
    for hole in filled_front(position, player):
        if hole == HOUSE[player] and house_is_full(position, player, rules):
            # Donkers 2.4b: the owned, full house starts only if it is the only filled front hole.
            if filled_front(position, player) == [hole]:
                may_start.append(hole)
            continue
        if position.holes[hole] == 1 and not singleton_may_start(position, player, rules):
            continue  # Donkers 2.4c, Dutch I.b
        may_start.append(hole)
    return both_ways(position, player, may_start, rules)


def mtaji_takasas(position: Position, player: str, rules: Any) -> list[Start]:
    """Return the takasa starts of a player whose store is empty and who has no capture."""
    # Donkers 3.5a: from the front row if possible. Donkers 3.3: never from a single seed.
    may_start = [hole for hole in FRONT[player] if position.holes[hole] >= 2]
    if not may_start:
        may_start = [hole for hole in BACK[player] if position.holes[hole] >= 2]
    if rules.takasia == "zanzibar":
        # Donkers 4.1: the hole under takasia may not be emptied.
        may_start = [hole for hole in may_start if hole != position.barred]
    if rules.takasia == "dutch" and len(may_start) >= 2:
        # Dutch II: with a choice of holes, the only threatened one has to stay.
        threatened = threatened_holes(position, player, rules)
        if len(threatened) == 1:
            may_start = [hole for hole in may_start if hole not in threatened]
    return both_ways(position, player, may_start, rules)


def exempt_from_takasia(position: Position, hole: Hole, rules: Any) -> bool:
    """Return whether the mover's hole can never be barred."""
    mover = position.mover
    # CHOICE (Donkers 4.1): de Voogt also spares a hole with a single seed.
    if rules.takasia_spares_singletons and position.holes[hole] == 1:
        return True
    # Donkers 4.1c: the owned house.
    if hole == HOUSE[mover] and position.owned[mover]:
        return True
    # Donkers 4.1a: the only filled front hole ...
    if filled_front(position, mover) == [hole]:
        return True
    # ... and the only front hole with more than one seed.
    return [filled for filled in FRONT[mover] if position.holes[filled] >= 2] == [hole]


def takasia_hole(position: Position, rules: Any) -> Hole | None:
    """Return the hole barred to the mover after the opponent's takasa, or None (Donkers 4.1)."""
    mover = position.mover
    if rules.takasia != "zanzibar" or in_namua(position, mover):
        return None
    # Donkers 4.1 (1): the mover must takasa as well.
    if captures(position, mover, rules):
        return None
    # Donkers 4.1 (2): exactly one of the mover's holes could be captured.
    threatened = threatened_holes(position, mover, rules)
    if len(threatened) != 1:
        return None
    (hole,) = threatened
    return None if exempt_from_takasia(position, hole, rules) else hole


# --- one move ---------------------------------------------------------------------------------


class FrontRowEmpty(Exception):
    """A front row has become empty: the game is over, even in the middle of a move."""

    def __init__(self, winner: str) -> None:
        super().__init__(winner)
        self.winner = winner


class InfiniteMove(Exception):
    """More seeds than allowed have been put down in one move."""


class Move:
    """One move being carried out on its own board."""

    def __init__(self, before: Position, play_house: bool, rules: Any) -> None:
        """Set up the board; ``play_house`` decides at a house that may stop the move."""
        self.rules = rules
        self.player = before.mover
        self.opponent = OPPONENT[before.mover]
        # Donkers 2.2: the position before an action decides its stage, so the last store seed is
        # played in namua. CHOICE (Dutch I.a): if a capture waits for its side after that last
        # seed, it continues with an empty store, and so in mtaji.
        self.namua = in_namua(before, before.mover)
        self.play_house = play_house
        self.house_choice_arose = False
        self.barred = before.barred if rules.takasia == "zanzibar" else None
        self.sown = before.sown
        self.board = Position(
            holes=dict(before.holes),
            stores=dict(before.stores),
            owned=dict(before.owned),
            mover=before.mover,
        )
        self.holes = self.board.holes
        self.owned = self.board.owned

    # Single motions of the hand.

    def put_down(self, hole: Hole) -> None:
        """Let one seed fall into a hole."""
        self.sown += 1
        if self.sown > self.rules.sow_limit:
            raise InfiniteMove  # Donkers 1.5a
        self.holes[hole] += 1

    def put_store_seed(self, hole: Hole) -> None:
        """Bring one seed from the store into play."""
        self.board.stores[self.player] -= 1  # Donkers 2.2
        self.put_down(hole)

    def sow(self, seeds: int, hole: Hole, direction: str) -> tuple[Hole, bool]:
        """Sow seeds, the first into ``hole``; return the last hole and whether it was empty."""
        while True:
            was_empty = self.holes[hole] == 0
            self.put_down(hole)
            seeds -= 1
            if seeds == 0:
                return hole, was_empty
            hole = NEXT[direction][hole]

    def lift_and_sow(self, hole: Hole, direction: str) -> tuple[Hole, bool]:
        """Lift all seeds of the player's hole and sow them from the next one; see :meth:`sow`."""
        seeds, self.holes[hole] = self.holes[hole], 0
        if hole == HOUSE[self.player]:
            self.owned[self.player] = False  # Donkers 2.5a: an emptied house is lost.
        first = NEXT[direction][hole]
        # Donkers 1.2: the lift has emptied the mover's front row, and the next seed does not go
        # there either: lost at once.
        if not filled_front(self.board, self.player) and first not in FRONT_HOLES:
            raise FrontRowEmpty(winner=self.opponent)
        return self.sow(seeds, first, direction)

    def take_two_and_sow(self, hole: Hole, direction: str) -> tuple[Hole, bool]:
        """Sow two seeds of the lone house and leave the others there; see :meth:`sow`."""
        self.holes[hole] -= 2
        # Donkers 2.4b leaves the house owned, unless (with a minimum of 2) these were its last
        # two seeds: Donkers 2.5a.
        if self.holes[hole] == 0:
            self.owned[self.player] = False
        # Dutch footnote 2, if switched on, ends a house that has fallen below the minimum.
        if self.rules.house_lost_below_min and self.holes[hole] < self.rules.house_min:
            self.owned[self.player] = False
        return self.sow(2, NEXT[direction][hole], direction)

    def capture(self, hole: Hole, direction: str) -> tuple[Hole, bool]:
        """Take the seeds facing ``hole`` and sow them from a kichwa; see :meth:`sow`."""
        captured = FACING[hole]
        seeds, self.holes[captured] = self.holes[captured], 0
        if captured == HOUSE[self.opponent]:
            self.owned[self.opponent] = False  # Donkers 2.5a: a captured house is lost.
        if not self.namua:
            # Donkers 2.5a, 3.2: the first capture of mtaji ends both houses.
            self.owned[SOUTH] = self.owned[NORTH] = False
        if not filled_front(self.board, self.opponent):
            raise FrontRowEmpty(winner=self.player)  # Donkers 1.2
        return self.sow(seeds, kichwa_to_sow_from(self.player, direction), direction)

    # Whole moves.

    def run(self, start: Start, capturing: bool) -> Position:
        """Play a move to its end; return the position after it.

        Raises:
            FrontRowEmpty: a front row becomes empty.
            InfiniteMove: the move sows more seeds than allowed.
        """
        hole, direction = start
        if self.namua and capturing:
            self.put_store_seed(hole)
            last, was_empty = self.capture(hole, direction)  # Donkers 2.3
        elif self.namua:
            # Donkers 2.4b counts the seeds before the store seed goes in.
            takes_two = self.lone_house_takes_two(hole)
            self.put_store_seed(hole)
            if takes_two:
                last, was_empty = self.take_two_and_sow(hole, direction)  # Donkers 2.4b
            else:
                last, was_empty = self.lift_and_sow(hole, direction)  # Donkers 2.4
        else:
            last, was_empty = self.lift_and_sow(hole, direction)  # Donkers 3.3
        return self.carry_on(last, was_empty, direction, capturing)

    def resume(self, hole: Hole, direction: str) -> Position:
        """Continue a namua capture that waited for its side; see :meth:`run`."""
        last, was_empty = self.capture(hole, direction)
        return self.carry_on(last, was_empty, direction, capturing=True)

    def lone_house_takes_two(self, hole: Hole) -> bool:
        """Return whether a namua takasa from ``hole`` is the two-seed one of a lone, full house."""
        if hole != HOUSE[self.player] or not house_is_full(self.board, self.player, self.rules):
            return False
        if self.rules.lone_house == "side":
            # Dutch I.c: all other holes of both rows are empty; else an ordinary hole.
            return [own for own in SIDE[self.player] if self.holes[own] > 0] == [hole]
        # Donkers 2.4b: all other front holes are empty.
        return filled_front(self.board, self.player) == [hole]

    def carry_on(self, last: Hole, was_empty: bool, direction: str, capturing: bool) -> Position:
        """Continue after a sowing that ended at ``last`` until the move ends."""
        while True:
            # Donkers 1.5: a last seed in an empty hole ends the move.
            if was_empty:
                return self.finish(capturing)

            # Donkers 1.6c: a capture goes before endelea. Donkers 1.7: never in a takasa.
            if capturing and last in FRONT_HOLES and self.holes[FACING[last]] > 0:
                forced = forced_direction(last)
                if forced is not None:
                    direction = forced  # Donkers 1.4b, kibao 4.1
                elif self.namua and self.rules.capture_side == "free":
                    return self.wait_for_side(last)  # Dutch I.a: chosen each time
                # Otherwise Donkers 1.4c: the running direction is kept.
                last, was_empty = self.capture(last, direction)
                continue

            at_full_house = last == HOUSE[self.player] and house_is_full(
                self.board, self.player, self.rules
            )
            if at_full_house and self.namua and not capturing:
                return self.finish(capturing)  # Donkers 2.5b (1)
            if at_full_house and self.namua and capturing:
                self.house_choice_arose = True
                if not self.play_house:
                    return self.finish(capturing)  # Donkers 2.5b (2): stop ...
                # ... or play the house: it is lifted below like any other hole.
            in_mtaji_takasa = not self.namua and not capturing
            if at_full_house and in_mtaji_takasa and self.rules.house_stops_mtaji_takasa:
                return self.finish(capturing)  # kibao 1.6.2
            # Otherwise Donkers 3.2: an ordinary hole in mtaji.

            # Donkers 1.6b, 4.1b: endelea stops at the hole under takasia.
            if not capturing and last == self.barred:
                return self.finish(capturing)

            # Donkers 1.6: endelea, in the same direction ...
            if capturing and self.rules.endelea_turns and last in FRONT_HOLES:
                # ... except that on the Dutch sheet (I.a) kichwa and kimbi turn it inward.
                direction = forced_direction(last) or direction
            last, was_empty = self.lift_and_sow(last, direction)

    def finish(self, capturing: bool) -> Position:
        """End the move and pass the turn to the opponent."""
        self.board.mover = self.opponent
        if not self.namua and not capturing:
            # Donkers 4.1: only a takasa made in mtaji can put a hole under takasia.
            self.board.barred = takasia_hole(self.board, self.rules)
        return self.board

    def wait_for_side(self, hole: Hole) -> Position:
        """Pause before a capture whose side the same player still has to choose."""
        self.board.pending = hole
        self.board.sown = self.sown
        return self.board


# --- all moves --------------------------------------------------------------------------------


def action_number(start: Start, house: int, captured_first: bool) -> int:
    """Return the action of a move, ``pit * 4 + direction * 2 + house``.

    ``captured_first`` is True if the first seeds that the move sows are captured seeds.
    """
    (row, number), direction = start
    in_front = row in "Aa"
    pit = number - 1 if in_front else 8 + number - 1
    if captured_first:
        left = direction == CLOCKWISE  # from hole 1, the left kichwa
    elif in_front:
        left = direction == ANTICLOCKWISE
    else:
        left = direction == CLOCKWISE
    return pit * 4 + (0 if left else 1) * 2 + house


def legal_moves(text: str, rules: Any) -> dict[int, str]:
    """Return the position text after each legal action of a position text.

    A move that ends the game has "S wins" or "N wins" instead: a front row has become empty, or
    the player who would act next has no legal move. The result is empty if the position has no
    legal move: its mover has lost.
    """
    moves = moves_before_end(text, rules)
    for action, after in moves.items():
        if after in WINS.values():
            continue
        # Donkers 1.2 (2), 1.5a: a player who cannot move loses.
        if not moves_before_end(after, rules):
            next_player = after.split()[3]
            moves[action] = WINS[OPPONENT[next_player]]
    return moves


def moves_before_end(text: str, rules: Any) -> dict[int, str]:
    """Do what :func:`legal_moves` does, without a check that the next player can move."""
    position = parse(text, rules)
    player = position.mover

    if position.pending is not None:
        # Dutch I.a: the capture waits at this hole; only its side is open.
        capturing_starts = [(position.pending, CLOCKWISE), (position.pending, ANTICLOCKWISE)]
    else:
        capturing_starts = captures(position, player, rules)
    starts = [(start, True) for start in capturing_starts]
    if not starts:
        # Donkers 1.7a: takasa only if there is no capture. CHOICE (Donkers 1.5a): finite or not.
        find = namua_takasas if in_namua(position, player) else mtaji_takasas
        starts = [(start, False) for start in find(position, player, rules)]

    moves: dict[int, str] = {}
    for start, capturing in starts:
        # RULES.md, "Board and notation": the letter of a capture that begins with
        # captured seeds names the kichwa; any other letter is the motion of the hand.
        captured_first = position.pending is not None or (in_namua(position, player) and capturing)
        for house in (0, 1):
            move = Move(position, play_house=bool(house), rules=rules)
            after: str | None
            try:
                if position.pending is not None:
                    after = write(move.resume(*start))
                else:
                    after = write(move.run(start, capturing))
            except FrontRowEmpty as end:
                after = WINS[end.winner]
            except InfiniteMove:
                after = None  # Donkers 1.5a: illegal
            if after is not None:
                moves[action_number(start, house, captured_first)] = after
            # RULES.md, "Board and notation": house = 1 only where the choice arises.
            if not move.house_choice_arose:
                break
    return moves
