"""Test analyses of positions and reviews of games."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import bao_agents
from bao_agents import analyse, analysis, review
from bao_agents.analysis import MISTAKE, Analysis, Line, Reviewed, review_move
from bao_agents.cli import review_text
from bao_agents.cli.main import main
from bao_agents.cli.review_text import lines
from bao_agents.exact.solved_positions import shipped_won_positions
from bao_agents.players import registry
from bao_agents.players.player import NamedPlayer
from bao_agents.players.registry import load
from bao_agents.search.limits import Limit
from bao_agents.search.solver.solver import Solution, Solver
from bao_agents.support.opinion import Opinion
from bao_env.board import Board
from bao_env.bots import RandomAgent
from bao_env.engine.action import actions_of
from bao_env.engine.ruleset import RULESETS
from bao_env.game import SEAT_NAMES
from bao_env.notation.transcript import parse_transcripts
from tests.conftest import Capsys, Says
from tests.positions import WON, board_of

pytestmark = pytest.mark.usefixtures("patience")


@pytest.mark.parametrize(
    "player",
    ["alphabeta:3", "solver:2000n", "guided:2000n", "zanzibar"],
)
def test_alphabeta_the_solver_and_networks_analyse(player: str) -> None:
    """An analysis gives each move a score, beside the solver's proof; its lines can be played."""
    board = Board.from_text(WON)
    analysis = analyse(board, player, lines=None)
    assert sorted(line.action for line in analysis.lines) == board.legal_actions
    assert (analysis.score, analysis.proof.winner, analysis.proof.plies) == (1.0, 0, 13)
    assert [line.proof.winner for line in analysis.lines] == [0] * 3 + [1] * 5
    assert all(-1 <= line.score <= 1 for line in analysis.lines)
    chances = [line.probability for line in analysis.lines]
    assert (None in chances) == ("zanzibar" not in player)
    game = board.copy()
    for action in analysis.lines[0].actions:
        game.push(action)
    assert len(game.move_stack) > 1
    opening = analyse(Board(), player, lines=2, proof_nodes=1)
    assert len(opening.lines) == 2 and opening.proof.winner is None
    assert -0.7 < opening.score < 0.7


def test_a_move_that_still_wins_is_never_marked() -> None:
    """A move that still wins is no mistake, whatever the proof of the position or the opinion of
    the move says."""
    positions = shipped_won_positions(RULESETS["zanzibar"])
    assert positions is not None
    sample = positions[positions.choices][:400:16]
    player, spared, blunders = bao_agents.load("alphabeta:2", threads=1), 0, 0
    for position, winning, legal in zip(
        sample.positions, sample.winning, sample.legal, strict=True
    ):
        for action in actions_of(legal):
            game = board_of(position, "zanzibar")
            game.push(action)
            reviewed = review_move(game, 0, player, proof_nodes=1000)
            if int(winning) >> action & 1:
                assert reviewed.mark in ("", "?!")
                [opinion] = [line for line in reviewed.analysis.lines if line.action == action]
                spared += reviewed.analysis.score - opinion.score >= MISTAKE
            elif reviewed.analysis.proof.winner == reviewed.seat:
                blunders += reviewed.mark == "??"
    assert spared > 3 and blunders > 5


def test_a_proved_move_proves_the_position() -> None:
    """All six moves win, although a proof of the position itself would need more nodes than the
    limit. Moves that win at once have the shortest proof."""
    text = "0,0,2,2,2,2,10,1/3,0,2,0,2,0,3,0/0,0,1,0,1,4,0,4/1,1,1,1,2,2,1,3 6,7 - N -"
    board = Board.from_text(text)
    for action in board.legal_actions:
        game = board.copy()
        game.push(action)
        reviewed = review_move(game, 0, "alphabeta:60000n", proof_nodes=100_000)
        assert reviewed.analysis.proof.winner == 1
        assert reviewed.mark in ("", "?!") and not reviewed.gives_win_away
    text = "1,2,9,2,3,0,1,5/4,1,2,7,1,5,3,7/0,0,0,0,0,0,1,1/2,2,1,2,0,0,1,1 0,0 - S -"
    proofs = [line.proof for line in analyse(Board.from_text(text), "alphabeta:1").lines]
    assert [(p.winner, p.plies, p.is_shortest) for p in proofs] == [(0, 1, True)] * 3


UNPROVEN = Solution(None, None, False, (), 0)


@pytest.mark.parametrize(
    ("loss", "mark"), [(0.25, ""), (0.3, "?"), (0.5, "?"), (0.6, "??"), (2.0, "??")]
)
def test_marks_begin_at_a_loss(loss: float, mark: str) -> None:
    played = Line(20, -loss, UNPROVEN, None, (20,))
    assert Reviewed(0, 0, played, Analysis(0.0, UNPROVEN, (played,))).mark == mark


@pytest.mark.parametrize("seat", [0, 1])
def test_marks_of_proven_moves(seat: int) -> None:
    won, lost = UNPROVEN._replace(winner=seat), UNPROVEN._replace(winner=1 - seat)
    for before, after, mark, gives_win_away in (
        (won, lost, "??", True),
        (won, UNPROVEN, "?!", False),
        (lost, lost, "", False),
        (lost, UNPROVEN, "", False),
        (UNPROVEN, lost, "??", False),
    ):
        played = Line(20, -0.5, after, None, (20,))
        reviewed = Reviewed(0, seat, played, Analysis(0.5, before, (played,)))
        assert (reviewed.mark, reviewed.gives_win_away) == (mark, gives_win_away)
        assert reviewed.leaves_win_open == (mark == "?!")


@pytest.mark.parametrize("seat", [0, 1])
def test_an_analysis_joins_opinions_and_proofs(seat: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Proven moves get their proof, with one more ply; the others keep the player's order. A best
    move that the player does not continue is continued by a search."""
    board = Board("kujifunza", seat)
    a, b, c, d, e, f = board.legal_actions[:6]
    after = {action: board.copy() for action in (a, b, c, d, e, f)}
    for action, board_after in after.items():
        board_after.push(action)
    proofs, noted = dict[bytes, Solution](), list[Any]()
    line: tuple[int, ...] = ()

    def know(position: Board, winner: int, plies: int, *line: int) -> Solution:
        return proofs.setdefault(position.packed.tobytes(), Solution(winner, plies, True, line, 9))

    class Known(Solver):
        def solve(self, *position: Any, **settings: Any) -> Solution:
            return proofs.get(position[0].tobytes(), UNPROVEN)

    class Continuing:
        def __init__(self, *rules: Any, **settings: Any) -> None:
            noted.append((*rules, settings))

        def search(self, packed: Any) -> Any:
            noted.append(packed.tolist())
            return SimpleNamespace(line=(7, 8))

    class Opinionated(RandomAgent):
        def analyse(self, *_: Any) -> list[Opinion]:
            opinions = (d, 0.9), (c, 0.8), (f, 0.3), (e, 0.3), (a, -0.5), (b, -0.6)
            return [Opinion(action, score, None, line) for action, score in opinions]

    monkeypatch.setattr(analysis, "Solver", Known)
    monkeypatch.setattr(analysis, "AlphaBetaAgent", Continuing)
    player = NamedPlayer("opinionated", Opinionated())
    loser = 1 - seat
    know(after[a], seat, 6, 1, 2)
    know(after[b], seat, 2, 3)
    know(after[c], loser, 5)
    know(after[d], loser, 9)
    won = analyse(board, player, lines=None)
    assert [(line.actions, line.score, line.proof.plies) for line in won.lines] == [
        ((b, 3), 1.0, 3),
        ((a, 1, 2), 1.0, 7),
        ((f,), 0.3, None),
        ((e,), 0.3, None),
        ((d,), -1.0, 10),
        ((c,), -1.0, 6),
    ]
    assert won[:2] == (1.0, Solution(seat, 3, False, (b, 3), 9)) and not noted
    proofs.clear()
    proof = know(board, loser, 8, c, 4)
    know(after[d], loser, 9)
    lost = analyse(board, player, lines=2)
    assert lost[:2] == (-1.0, proof) and [line.actions for line in lost.lines] == [(c, 4), (f,)]
    proofs.clear()
    unknown = analyse(board, player)
    assert unknown[:2] == (0.9, UNPROVEN)
    assert [line.actions for line in unknown.lines] == [(d, 7, 8), (c,), (f,)]
    limit, position = Limit(nodes=100_000), after[d].packed.tolist()
    assert noted == [(board.ruleset, limit, {"threads": 1}), position]
    line = (5, 6)
    assert analyse(board, player).lines[0].actions == (d, 5, 6)
    know(after[a], seat, 2)
    assert analyse(board, player).lines[0].actions == (a,) and len(noted) == 2


def test_a_win_that_is_left_open_is_proven_later(monkeypatch: pytest.MonkeyPatch) -> None:
    """If the player sees a mistake, the move gets as many nodes as the position had."""
    board = Board("kujifunza")
    start, (best, played) = board.packed.tobytes(), board.legal_actions[:2]
    board.push(played)

    class Late(Solver):
        def solve(self, *position: Any, **settings: Any) -> Solution:
            if position[0].tobytes() == start:
                return Solution(0, 3, True, (best, 1, 2), 9)
            return Solution(0, 6, True, (), 9) if settings["nodes"] == 400 else UNPROVEN

    monkeypatch.setattr(analysis, "Solver", Late)
    for score, plies in ((0.8, None), (0.5, 7), (-0.9, 7)):
        agent = RandomAgent()
        opinions = [Opinion(best, 0.9), Opinion(played, score)]
        monkeypatch.setattr(agent, "analyse", lambda *_, opinions=opinions: opinions, raising=False)
        [reviewed] = review(board, NamedPlayer("opinionated", agent), proof_nodes=400)
        assert (reviewed.played.proof.plies, reviewed.mark) == (plies, "")


@pytest.mark.parametrize(("winner", "mark"), [(0, ""), (1, "??"), (None, "??")])
def test_a_loss_that_was_proven_before_is_not_marked(
    winner: int | None, mark: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The solver needs what it has learnt about the position before."""
    board = Board("kujifunza")
    earlier = board.packed.tobytes()
    board.push(board.legal_actions[0])
    before = board.packed.tobytes()
    board.push(board.legal_actions[-1])

    class Learning(Solver):
        learnt = False

        def solve(self, *position: Any, **settings: Any) -> Solution:
            is_proven = self.learnt and position[0].tobytes() == before and "nodes" not in settings
            self.learnt |= position[0].tobytes() == earlier
            return Solution(winner, 6, False, (), 9) if is_proven else UNPROVEN

    def opinions(board: Board, *limit: Any) -> list[Opinion]:
        best, *mistakes = board.legal_actions
        return [Opinion(best, 0.9), *(Opinion(action, -0.9) for action in mistakes)]

    monkeypatch.setattr(analysis, "Solver", Learning)
    agent = RandomAgent()
    monkeypatch.setattr(agent, "analyse", opinions, raising=False)
    _, reviewed = review(board, NamedPlayer("opinionated", agent), proof_nodes=400)
    assert (reviewed.seat, reviewed.mark) == (1, mark)
    assert reviewed.analysis.proof.plies == (6 if winner == 0 else None)


@pytest.mark.parametrize(("seat", "values"), [(0, ("+0.50", "+0.25")), (1, ("-0.50", "-0.25"))])
def test_a_review_values_positions_for_south(
    seat: int, values: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A better line has five moves."""
    start = Board("zanzibar", seat)
    played, after, texts = start.legal_actions[0], start.copy(), []
    for _ in range(6):
        texts.append(after.move_text(after.legal_actions[-1]))
        after.push(texts[-1])
    moves = tuple(after.move_stack)
    best = Line(moves[0], 0.25, UNPROVEN, None, moves)
    worse = Line(played, -0.5, UNPROVEN, None, (played,))
    reviewed = Reviewed(0, seat, worse, Analysis(0.5, UNPROVEN, (best, worse)))
    monkeypatch.setattr("bao_agents.cli.review_text.review", lambda *_: iter([reviewed]))
    game = start.copy()
    game.push(played)
    line, *counts = lines(game, "greedy")
    text = f"{start.move_text(played)}??"
    better = f"better: {values[1]} {' '.join(texts[:5])}"
    assert line == f"   1 {SEAT_NAMES[seat]:5}  {text:10}{values[0]:21} {better}"
    assert counts[seat] == (
        f"{SEAT_NAMES[seat]}: 0 mistakes, 1 blunder; proven wins: 0 given away, 0 left unproven"
    )


def test_an_analysis_keeps_to_its_nodes_and_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """All eight moves together get as many nodes as the position, and so does a move of a game that
    may deserve a mark."""
    loaded, solver_settings, solve_settings = list[Any](), list[Any](), list[Any]()

    class Noted(Solver):
        def __init__(self, *rules: Any, **settings: Any) -> None:
            solver_settings.append(settings)
            super().__init__(*rules, **settings)

        def solve(self, *position: Any, **settings: Any) -> Solution:
            solve_settings.append(settings)
            return super().solve(*position, **settings)

    def note(name: str, **settings: Any) -> NamedPlayer:
        loaded.append((name, settings["threads"]))
        return load(name, **settings)

    monkeypatch.setattr(analysis, "Solver", Noted)
    monkeypatch.setattr(registry, "load", note)
    start = Board.from_text(WON)
    game = Board.from_text(WON, moves=[start.legal_actions[0]])
    analyse(start, "alphabeta:1", proof_nodes=400, threads=3)
    list(review(game, "alphabeta:1", proof_nodes=400, threads=3))
    assert loaded == [("alphabeta:1", 3)] * 2
    assert solver_settings == [{"nodes": 400, "threads": 3}] * 3
    analysed = [{"shortest": True}, *[{"shortest": True, "nodes": 50}] * 8]
    assert solve_settings == [*analysed, *analysed, {"shortest": True, "nodes": 400}]


def test_review_names_a_proven_win_that_is_given_away(monkeypatch: pytest.MonkeyPatch) -> None:
    start = Board.from_text(WON)
    best, *_, worst = analyse(start, "alphabeta:2", lines=None).lines
    good, bad = (Board.from_text(WON, moves=[line.action]) for line in (best, worst))
    [best_move], [worst_move] = (list(review(game, "alphabeta:2")) for game in (good, bad))
    assert (best_move.mark, best_move.gives_win_away, best_move.seat) == ("", False, 0)
    assert (worst_move.mark, worst_move.gives_win_away, worst_move.ply) == ("??", True, 0)
    move, south, north = lines(bad, "alphabeta:2")
    assert move.startswith("   1 South  ")
    assert "?? " in move and "South wins in 13" in move
    assert f"gives the proven win away; better: {start.move_text(best.action)}" in move
    assert south == "South: 0 mistakes, 1 blunder; proven wins: 1 given away, 0 left unproven"
    assert north == "North: 0 mistakes, 0 blunders; proven wins: 0 given away, 0 left unproven"
    unknown = Solution(winner=None, plies=None, is_shortest=False, line=(), nodes=0)
    unproven = worst_move._replace(played=worst_move.played._replace(score=0.5, proof=unknown))
    monkeypatch.setattr(review_text, "review", lambda board, player: [unproven])
    *_, south, _ = lines(bad, "alphabeta:2")
    assert south == "South: 0 mistakes, 0 blunders; proven wins: 0 given away, 1 left unproven"


def test_moves_of_a_review_have_the_numbers_of_transcripts() -> None:
    """Each player has one move with each number, and a turn of several actions has a single
    number."""
    start = "1,1,0,5,7,0,4,8/3,0,2,0,2,0,5,1/1,1,2,1,2,0,3,1/0,2,0,2,0,2,1,3 2,2 - N -"
    game = Board.from_text(start, "dutch")
    for _ in range(6):
        game.push(game.legal_actions[-1])
    numbers = [line.split()[:2] for line in lines(game, "alphabeta:1", 99)][:-2]
    turns = parse_transcripts(game.transcript())[0].turns
    texts = [[str(turn.number), ("South", "North")[turn.seat]] for turn in turns]
    assert [pair for i, pair in enumerate(numbers) if not i or pair != numbers[i - 1]] == texts


def test_an_unknown_reviewer_is_refused_first(tmp_path: Path, capsys: Capsys) -> None:
    file = tmp_path / "game"
    file.write_text("1: 7L*;\n")
    assert main(["replay", str(file), "--review", "--player", "nobody"]) == 2
    output = capsys.readouterr()
    assert "unknown player 'nobody'" in output.err and not output.out


def test_only_random_openings_are_called_random(tmp_path: Path, says: Says) -> None:
    file = tmp_path / "game"
    for head, is_said in (("", False), ("opening plies: 1\n", True)):
        file.write_text(f"{head}1: 7L*;\n")
        out = says(f"replay {file} --review --player alphabeta:1")
        assert ("drawn at random" in out) == is_said
        heads, row = out[out.index("   # seat") :].splitlines()[:2]
        assert heads.index("seat") == row.index("South") and heads.index("move") == row.index("7L*")
