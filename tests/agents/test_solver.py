"""Test the solver: its proofs are true, and what it cannot prove is unknown."""

from __future__ import annotations

import time
from functools import cache
from typing import Any, NoReturn
from unittest.mock import Mock, call

import numpy as np
import pytest

from bao_agents import solve
from bao_agents.cli.solve import describe
from bao_agents.search import sharing
from bao_agents.search.alphabeta.player import AlphaBetaAgent
from bao_agents.search.alphabeta.transposition import PROVEN, WIN_VALUE
from bao_agents.search.limits import NEVER, Limit
from bao_agents.search.memory import check_memory
from bao_agents.search.solver import proof_search
from bao_agents.search.solver import solver as solver_module
from bao_agents.search.solver.proof_number import LOSS, UNKNOWN, WAYS, WIN, prove
from bao_agents.search.solver.proof_search import ProofSearch
from bao_agents.search.solver.solver import SLOT_BYTES, Solution, Solver, table_bits
from bao_env import NORTH, RULESETS, SOUTH, Board, Outcome
from bao_env.engine.action import actions_of
from bao_env.engine.position import unpack
from bao_env.game import CUT_SHORT, Termination
from bao_env.notation import format_position
from tests import reference
from tests.conftest import Fails, Says
from tests.positions import SMOTHERS, STUCK, WON, board_of, draw, mixed_batch
from tests.reference import WINS
from tests.rulesets import every_ruleset
from tests.searches import reachable_values, solved_values

EVERY_RULESET = every_ruleset("zanzibar", "dutch")


@EVERY_RULESET
def test_wins_within_a_number_of_plies_match_a_literal_search(ruleset: str, thorough: bool) -> None:
    """The results match for each side and each bound, by the reference's rules alone."""
    rules = RULESETS[ruleset]

    @cache
    def wins_within(text: str, player: str, plies: int) -> bool:
        """Return whether a player can win within a number of plies."""
        moves = reference.legal_moves(text, rules)
        mover = text.split()[3]
        if not moves:
            return mover != player
        if plies == 0:
            return False
        after = (
            result == WINS[player]
            if result in WINS.values()
            else wins_within(result, player, plies - 1)
            for result in moves.values()
        )
        return any(after) if mover == player else all(after)

    search = ProofSearch(rules, 20)
    wins = 0
    for position in mixed_batch(rules, 80, seed=1):
        text = format_position(unpack(position))
        mover = text.split()[3]
        for value, player in ((WIN, mover), (LOSS, reference.OPPONENT[mover])):
            for bound in range(1, 4 if thorough else 3):
                expected = wins_within(text, player, bound)
                search.begin(None)
                proved = search.prove(position, bound, value)
                assert (proved == value) == expected, (text, player, bound)
                assert proved != UNKNOWN
                wins += expected
    assert wins > 4


@EVERY_RULESET
def test_agrees_with_what_alphabeta_proves(ruleset: str, thorough: bool) -> None:
    """The shortest wins are as long, and their lines lead to the end."""
    rules = RULESETS[ruleset]
    count = 600 if thorough else 100
    positions, legal = draw(ruleset, count, (10, 40))
    values = AlphaBetaAgent(rules, Limit(plies=6 if thorough else 5), threads=1).values(
        positions, legal
    )
    solver = Solver(rules, nodes=300_000)
    proved = np.abs(values) > PROVEN
    positions, legal, values = positions[proved], legal[proved], values[proved]
    assert len(values) > count // 40
    np.testing.assert_array_equal(solved_values(solver, positions, legal), np.sign(values))
    for position, value in list(zip(positions, values, strict=True))[: 40 if thorough else 8]:
        first = solver.solve(position)
        assert first.is_shortest == (first.plies == 1)  # of longer wins this says nothing
        solution = solver.solve(position, shortest=True)
        assert solution.is_shortest
        if ruleset != "dutch":  # there alpha-beta does not count captures that wait
            assert solution.plies == WIN_VALUE - abs(value)
        board = board_of(position, rules)
        for action in solution.line:
            board.push(action)
        outcome = board.outcome()
        assert outcome is not None and outcome.winner == solution.winner
        assert len(solution.line) == solution.plies


@pytest.mark.slow
def test_shortest_win_of_kujifunza() -> None:
    solution = solve(Board("kujifunza", first_player=NORTH), shortest=True)
    assert solution.winner == NORTH and solution.is_shortest
    assert solution.plies == len(solution.line) == 21


def test_a_proof_goes_on_where_a_limit_stopped_it() -> None:
    """A stopped search leaves its results in the table, but not the marks of the line that it was
    searching."""
    position = draw("zanzibar", 40, (22, 34), seed=7)[0][12]
    solution = Solver("zanzibar").solve(position)
    solver = Solver("zanzibar")
    pieces = [solver.solve(position, nodes=500)]
    while pieces[-1].winner is None and len(pieces) < 100:
        pieces.append(solver.solve(position, nodes=500))
    assert pieces[-1].winner == solution.winner
    assert all(piece.nodes == 500 for piece in pieces[:-1])
    assert sum(piece.nodes for piece in pieces) < 1.25 * solution.nodes


@pytest.mark.parametrize("bits", [4, 14])
@every_ruleset("malawi", name="name")
def test_threads_prove_what_retrograde_analysis_proves(
    name: str, bits: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The proofs agree even with a table of 16 slots, where threads overwrite each other's entries.

    A larger table begins with this size, and grows during the search.
    """
    for name_of_size, size in (("EASY_NODES", 1), ("TABLE_BITS", 4), ("GROW_NODES", 40)):
        monkeypatch.setattr(proof_search, name_of_size, size)
    rules, values = RULESETS[name], dict[bytes, tuple[np.ndarray, int]]()
    for position in draw(name, 200, (40, 60), seed=4)[0]:
        values |= reachable_values(rules.kernel, position, 300) or {}
    assert len(values) > (500 if name == "malawi" else 0)
    for threads in (1, 2, 4, 8):
        search, proofs = ProofSearch(rules, bits, threads), 0
        for position, value in values.values():
            search.clear()
            search.begin(4000)
            proved = search.prove(position)
            assert proved in (value, UNKNOWN), (unpack(position), threads)
            proofs += proved != UNKNOWN
        assert proofs > 0.9 * len(values)


def test_a_table_that_grows_keeps_its_entries(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each entry keeps its numbers and its work, in the slot of its key."""
    for name_of_size, size in (("TABLE_BITS", 4), ("GROW_NODES", 400)):
        monkeypatch.setattr(proof_search, name_of_size, size)
    search = ProofSearch(RULESETS["zanzibar"], 10)

    def entries() -> dict[int, tuple[int, ...]]:
        table, filled = search.table, np.flatnonzero(search.table.numbers)
        keys = table.keys[filled] ^ table.numbers[filled]
        assert ((keys & np.uint64(len(table.keys) // WAYS - 1)) == filled // WAYS).all()
        numbers, work = table.numbers[filled].tolist(), table.work[filled].tolist()
        return dict(zip(keys.tolist(), zip(numbers, work, strict=True), strict=True))

    position = draw("zanzibar", 40, (22, 34), seed=7)[0][12]
    search.begin(400)
    search.prove(position)
    before = entries()
    assert len(search.table.keys) == WAYS << 4 and len(before) > 40
    search._enlarge()
    assert len(search.table.keys) == WAYS << 10 and entries() == before
    by_itself = ProofSearch(RULESETS["zanzibar"], 10)
    by_itself.begin(900)
    by_itself.prove(position)
    assert len(by_itself.table.keys) == WAYS << 10


def test_threads_that_fail_end_the_search(monkeypatch: pytest.MonkeyPatch) -> None:
    """An error in one thread ends them all, and the next call is right. If no threads can be
    started, the search runs on one."""
    position, solver = draw("zanzibar", 40, (22, 34), seed=7)[0][12], Solver("zanzibar", threads=3)
    calls: list[int] = []

    def fail_in_second_thread(*arguments: Any) -> int:
        calls.append(1)
        if len(calls) == 3:
            raise MemoryError
        return int(prove(*arguments))

    monkeypatch.setattr(proof_search, "EASY_NODES", 1)
    with monkeypatch.context() as patch:
        patch.setattr(proof_search, "prove", fail_in_second_thread)
        with pytest.raises(MemoryError):
            solver.solve(position)
    winner = Solver("zanzibar").solve(position).winner
    assert solver.solve(position).winner == winner is not None
    with monkeypatch.context() as patch:
        patch.setattr(sharing, "_thread", NoThreads)
        assert Solver("zanzibar", threads=3).solve(position).winner == winner


class NoThreads:
    """A system that cannot start more threads."""

    @staticmethod
    def start_new_thread(*_: object) -> None:
        raise RuntimeError("can't start new thread")


def test_memory_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bao_agents.search.memory.free_memory", lambda: 64 << 20)
    with pytest.raises(ValueError, match="memory=65: only 64 megabytes are free"):
        Solver("zanzibar", memory=65)
    position = draw("zanzibar", 40, (22, 34), seed=7)[0][12]
    solver = Solver("zanzibar", nodes=10**9, memory=6)
    monkeypatch.setattr(solver._search, "begin", begin := Mock(wraps=solver._search.begin))
    monkeypatch.setattr(solver._search, "allow", allow := Mock(wraps=solver._search.allow))
    assert solver.solve(position).winner is not None
    begin.assert_called_once()  # a position is solved once
    allow.assert_called_once_with(16)  # 5 MiB
    assert [check_memory(memory) for memory in (None, 1, 64)] == [None, 1 << 20, 64 << 20]
    for memory, most_bytes in ((6 << 20, 6 << 20), (None, 16 << 20)):  # a fourth of the free memory
        bits = table_bits(Limit(nodes=10**9), 1, memory)
        assert SLOT_BYTES << bits <= most_bytes < SLOT_BYTES << bits + 1


@pytest.mark.parametrize(
    ("limit", "threads", "bits"),
    [
        (Limit(nodes=8), 1, 18),
        (Limit(nodes=1 << 24), 1, 21),  # a slot for every eight positions
        (Limit(nodes=1 << 24), 4, 21),
        (Limit(seconds=8.0), 4, 22),  # of a million a second and thread
        (Limit(nodes=1 << 22, seconds=8.0), 4, 19),
    ],
)
def test_a_table_fits_its_limit(limit: Limit, threads: int, bits: int) -> None:
    assert table_bits(limit, threads, 1 << 40) == bits


def test_game_that_is_over() -> None:
    board = Board.from_text(STUCK)
    assert solve(board) == Solution(NORTH, 0, True, (), 0)
    assert Solver(nodes=9).solve(board.packed) == Solution(NORTH, 0, True, (), 2)
    board = Board()
    board.end(CUT_SHORT)
    assert solve(board) == Solution(None, None, False, (), 0)


def test_a_win_may_leave_the_other_side_without_a_move() -> None:
    ruleset = RULESETS["kibao"]
    board = Board.from_text(SMOTHERS, ruleset)
    search = ProofSearch(ruleset, 4)
    search.begin(100)
    assert search.prove(board.packed, 1, WIN) == WIN
    [action] = search.line(board.packed, WIN, 1)
    board.push(action)
    assert board.outcome() == Outcome(NORTH, Termination.NO_LEGAL_MOVE)


def test_what_a_table_has_lost_is_proven_again_for_the_line() -> None:
    board = Board.from_text(WON)
    search = ProofSearch(board.ruleset, 5)
    search.begin(10**6)
    value = search.prove(board.packed)
    assert value == WIN and len(search.line(board.packed, value, None)) > 8


def test_the_line_of_the_shortest_win() -> None:
    """The winner is to move, then the loser."""
    board, solver = Board.from_text(WON), Solver(nodes=10**6)
    assert len(solver.solve(board.packed).line) > 13
    for plies in (13, 12):
        winner, *numbers, line, _ = solver.solve(board.packed, shortest=True)
        assert (winner, *numbers, len(line)) == (SOUTH, plies, True, plies)
        board.push(line[0])


def test_solve_passes_its_arguments_on(monkeypatch: pytest.MonkeyPatch) -> None:
    solver_class, board = Mock(), Board("kujifunza")
    monkeypatch.setattr(solver_module, "Solver", solver_class)
    limits: dict[str, Any] = {"nodes": 1, "seconds": 2.0, "threads": 3, "memory": 4}
    assert solve(board, shortest=True, **limits) is solver_class().solve.return_value
    assert solver_class.call_args_list[0] == call(board.ruleset, **limits)
    [[position], options] = solver_class().solve.call_args
    assert position.tobytes() == board.packed.tobytes() and options == {"shortest": True}


def test_ctrl_c_ends_the_searches_of_a_solver(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each call says how long it may take, and how to end it."""
    solver = Solver("zanzibar", nodes=1000, threads=2)
    calls, deadlines = list[tuple[int, int, int, float]](), list[list[int]]()
    searches = ProofSearch.for_threads(solver.ruleset, 4, 2)
    monkeypatch.setattr(ProofSearch, "for_threads", lambda *_: searches)

    def run(size: int, step: int, work: Any, threads: int, expire: Any, seconds: float) -> None:
        calls.append((size, step, threads, seconds))
        work(slice(0, 1), 0)
        expire()
        deadlines.append([search._deadline for search in [solver._search, *searches]])

    monkeypatch.setattr(solver_module, "search_in_threads", run)
    positions, legal = draw("zanzibar", 20, (22, 34), seed=7)
    solver.solve(positions[0], nodes=2000)
    assert deadlines.pop() == [0, NEVER, NEVER]
    solver.judge(positions, legal)
    assert deadlines.pop()[1:] == [0, 0]
    assert calls == [(1, 1, 1, 0.002), (20, 16, 2, 0.001)]
    for nodes in (0, 1 << 63):
        with pytest.raises(ValueError, match="solver: nodes"):
            solver.solve(positions[0], nodes=nodes)


@EVERY_RULESET
def test_judge_agrees_with_solve(ruleset: str) -> None:
    """A judgement has the winner of each action, and a number of plies in which the win is
    certain."""
    rules = RULESETS[ruleset]
    plies = (6, 12) if ruleset == "kujifunza" else (38, 42)
    positions, legal = draw(ruleset, 20, plies)
    legal[3] = 0
    judged = Solver(rules, nodes=30_000, threads=2).judge(positions, legal)
    assert (judged.winning & judged.losing == 0).all()
    assert ((judged.winning | judged.losing) & ~legal == 0).all()
    solver, judged_actions = Solver(rules), 0
    for position, winning, losing, plies in zip(
        positions, judged.winning, judged.losing, judged.plies, strict=True
    ):
        judged_here = actions_of(winning | losing)
        assert np.flatnonzero(plies).tolist() == judged_here
        board = board_of(position, rules)
        mover = board.turn
        for action in judged_here:
            board.push(action)
            solution = solver.solve(board.packed, shortest=True, nodes=40_000)
            outcome = board.outcome()
            assert ((outcome or solution).winner == mover) == (action in actions_of(winning))
            if outcome:
                assert plies[action] == 1
            elif solution.is_shortest:
                assert solution.plies is not None and solution.plies + 1 <= plies[action]
            board.pop()
        judged_actions += len(judged_here)
    assert judged_actions > 30


def test_a_judgement_does_not_depend_on_the_positions_before() -> None:
    """Each part of sixteen positions begins with an empty table."""
    positions, legal = draw("zanzibar", 16, (26, 34), seed=7)
    judged = Solver("zanzibar", nodes=400).judge(np.tile(positions, (2, 1)), np.tile(legal, 2))
    for name, array in judged._asdict().items():
        np.testing.assert_array_equal(array[:16], array[16:], name)
    assert judged.winning.any() and ((judged.winning | judged.losing) != np.tile(legal, 2)).any()


def test_solve_with_the_shortest_win_has_one_deadline() -> None:
    start = time.monotonic()
    solution = solve(Board("kujifunza"), seconds=0.1, shortest=True)
    assert time.monotonic() - start < 2  # the shortest win takes half a million positions
    assert solution.winner == SOUTH and not solution.is_shortest
    assert solve(Board("kujifunza"), nodes=20_000, shortest=True).nodes < 21_000


@pytest.mark.parametrize(
    ("options", "limits"),
    [
        ("", (60.0, None, False, None)),
        ("--nodes 9", (None, 9, False, None)),
        ("--nodes 9 --seconds 2 --shortest --memory 7", (2.0, 9, True, 7)),
    ],
)
def test_the_command_passes_on_its_limits(
    options: str, limits: tuple[object, ...], monkeypatch: pytest.MonkeyPatch, says: Says
) -> None:
    passed: dict[str, object] = {}

    def note(board: Board, **settings: object) -> Solution:
        passed.update(settings)
        return Solution(None, None, False, (), 1234)

    monkeypatch.setattr("bao_agents.cli.solve.solve", note)
    assert says(f"solve --threads 3 {options}") == "unknown (1,234 positions visited)\n"
    names = ("seconds", "nodes", "shortest", "memory")
    assert passed == {"threads": 3, **dict(zip(names, limits, strict=True))}


@pytest.mark.parametrize(
    ("solution", "words"),
    [
        (Solution(0, 2, True, (20, 22), 9), "South wins in 2 plies (9 positions visited)\nA6L A6R"),
        (
            Solution(1, 1, False, (20, 22), 1),
            "North wins within 1 ply (1 position visited)\nthe moves of the first proof:\nA6L A6R",
        ),
    ],
)
def test_a_solution_in_words(solution: Solution, words: str) -> None:
    assert describe(solution) == words


def test_ctrl_c_ends_the_command(fails: Fails, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*arguments: object, **settings: object) -> NoReturn:
        raise KeyboardInterrupt

    for work in ("solve", "generate"):
        monkeypatch.setattr(f"bao_agents.cli.solve.{work}", stop)
    assert fails("solve", status=130) == "\nstopped\n"
    advice = "\nstopped: run the same command to continue\n"
    assert fails("solve --sample 4 --out new.npz", status=130) == advice


def test_command_line(says: Says) -> None:
    verdict, line = says("solve --ruleset kujifunza").splitlines()[:2]
    assert verdict.startswith("South wins within ")
    board = Board("kujifunza")
    for move in line.split():
        board.push(move)
    outcome = board.outcome()
    assert outcome is not None and outcome.winner == SOUTH
    assert says("solve --nodes 100").startswith("unknown (10")
