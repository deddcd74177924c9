"""Test paired matches, their openings and their statistics."""

from __future__ import annotations

import csv
import errno
import io
import json
import shlex
import sys
from collections import Counter
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import numpy as np
import pytest
from PIL import Image

from bao_agents.arena.elo import wilson_interval
from bao_agents.arena.openings import (
    ANY_BALANCE,
    BALANCED,
    MatchOpenings,
    draw_openings,
    parse_openings,
    read_openings,
)
from bao_agents.arena.pairs import Pairs, play_match
from bao_agents.arena.report import limit_ms, notes, notes_of, plot
from bao_agents.arena.scheduler import play
from bao_agents.cli import event_report
from bao_agents.cli import games as cli_games
from bao_agents.cli.main import main as bao
from bao_agents.evaluators.tables import SCALE
from bao_agents.nets.checkpoint_files import GUIDES
from bao_agents.players import registry
from bao_agents.players.faults import PlayerFault
from bao_agents.search.alphabeta.player import AlphaBetaAgent
from bao_agents.search.limits import Clock, Limit
from bao_agents.support.provenance import current_commit, digest
from bao_env.board import Board
from bao_env.bots import GreedyAgent, RandomAgent
from bao_env.engine.batch import Engine
from bao_env.engine.kernel import legal_of
from bao_env.engine.position import unpack
from bao_env.engine.ruleset import get_ruleset
from bao_env.notation.game_record import replay
from bao_env.notation.transcript import parse_transcripts
from tests.conftest import Fails, Says
from tests.positions import OPENING
from tests.processes import ROOT
from tests.rulesets import every_ruleset


def test_wilson_of_known_proportions() -> None:
    """The values are those of Newcombe, "Two-sided confidence intervals for the single proportion"
    (1998), table I, method 3."""
    for hits, n, low, high in (
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0000, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ):
        assert wilson_interval(hits / n, n) == pytest.approx((low, high), abs=6e-5)
    for n in range(1, 100):  # rounding makes no bound of a clean sweep finite
        assert (wilson_interval(0.0, n)[0], wilson_interval(1.0, n)[1]) == (0.0, 1.0)


@every_ruleset("zanzibar")
def test_openings(ruleset: str) -> None:
    """Openings differ and depend on the seed; games that begin with them are replayed below."""
    openings = draw_openings(ruleset, 60, 8, seed=3)
    assert len({position.tobytes() for position in openings.positions}) == 60
    fewer, other_seed = (draw_openings(ruleset, 25, 8, seed=seed).positions for seed in (3, 4))
    np.testing.assert_array_equal(openings[:25].positions, fewer)
    assert not np.array_equal(other_seed, fewer)


def game_key(openings: MatchOpenings, i: int) -> tuple[object, ...]:
    """Return a key that two openings of kujifunza share if their games are the same.

    Games count as the same if seats or the directions of the board are swapped, because each
    opening is played from both seats.
    """
    position = unpack(openings.positions[i])
    sides = [(position.front[seat], position.back[seat]) for seat in (0, 1)]
    if position.mover:
        sides.reverse()
    rows = [row for side in sides for row in side]
    return min(tuple(rows), tuple(row[::-1] for row in rows))


def test_openings_of_kujifunza_are_different_games(tmp_path: Path) -> None:
    """After three plies there are few different games: 218 among 500 positions that differed. The
    same holds for openings from a file."""
    openings = draw_openings("kujifunza", 200, 3, seed=1, balance=None)
    keys = {game_key(openings, i) for i in range(200)}
    assert len(keys) == 200 and not openings.starting_seats.any()
    late = draw_openings("kujifunza", 300, 40, seed=1, balance=ANY_BALANCE)
    assert (late.positions == draw_openings("kujifunza", 300, 40, 1, balance=None).positions).all()
    legal = np.empty(300, np.uint64)
    Engine("kujifunza").find_legal(late.positions, legal, np.empty(300, np.int8))
    assert legal.all()  # none ends the game
    first = Board("kujifunza")
    lines = []
    for move in first.legal_moves:
        board = Board.from_text("start", "kujifunza", moves=[move])
        lines.append(f"{board.text()}\t{move}")
    file = tmp_path / "openings"
    file.write_text("\n".join(lines))
    half = len(lines) // 2
    read = read_openings(file, "kujifunza", half, seed=1)
    assert len({game_key(read, i) for i in range(half)}) == half
    with pytest.raises(ValueError, match=f"{half} different openings"):
        read_openings(file, "kujifunza", half + 1, seed=1)


def largest_value(openings: MatchOpenings) -> float:
    """Return the largest value that a search of six plies gives a side, in logits."""
    rules = Engine("zanzibar").rules
    legal = np.array([legal_of(rules, position) for position in openings.positions], np.uint64)
    values = AlphaBetaAgent("zanzibar", Limit(plies=6)).values(openings.positions, legal)
    return float(np.abs(values).max() / SCALE)


def test_openings_are_balanced() -> None:
    """Without a limit some openings are unbalanced. All positions of the shipped file differ."""
    assert largest_value(draw_openings("zanzibar", 100, 8, 5, None)) > 1.5
    assert largest_value(draw_openings("zanzibar", 100, 8, 5, 0.5)) <= 0.5
    shipped = read_openings("balanced", "zanzibar", 2000, seed=1)
    assert len({position.tobytes() for position in shipped.positions}) == 2000
    assert largest_value(shipped) <= 1.0


def test_too_few_balanced_openings_say_how_many_there_are(fails: Fails) -> None:
    """The error says what to do, since even the opening position may be unbalanced."""
    error = fails("match alphabeta:2 random --opening-plies 0 --pairs 1 --balance 0")
    assert "has only 1 different opening of 0 plies, of which a search finds 0 balanced" in error
    assert "--balance 100 allows all" in error


def test_only_matches_of_searches_are_balanced(says: Says, monkeypatch: pytest.MonkeyPatch) -> None:
    """Other matches need not wait until a search has compiled."""

    def balance(line: str) -> object:
        return json.loads(says(f"match {line} --pairs 1 --threads 1 --json -"))["balance"]

    balances = [balance("greedy alphabeta:1"), balance("random greedy --balance 2")]
    assert balances == [1.0, 2.0]
    monkeypatch.setattr(AlphaBetaAgent, "__init__", lambda *args, **options: 1 / 0)
    assert balance("random greedy") is None


def test_match_with_openings_from_a_file(tmp_path: Path, says: Says) -> None:
    """Openings may differ in length; each is played from both seats."""
    boards = [Board.from_text(OPENING, moves=line.split()) for line in ("A6L", "A7R A6L")]
    file, games = tmp_path / "openings", tmp_path / "games"
    file.write_text(f"{boards[0].text()}\tA6L\n{boards[1].text()}\tA7R A6L\n")
    says(f"match greedy random --pairs 2 --openings {file} --games {games}")
    played = [tuple(replay(game).actions) for game in parse_transcripts(games.read_text())]
    openings = [tuple(board.move_stack) for board in boards]
    assert [sum(game[: len(o)] == o for game in played) for o in openings] == [2, 2]


def test_openings_between_comments_count_once(tmp_path: Path) -> None:
    """An opening counts once, however often its position is written, and whatever follows the
    moves."""
    lines = BALANCED.read_text().splitlines()[5:8]
    file = tmp_path / "openings"
    file.write_text("\n".join(lines))
    plain = read_openings(file, "zanzibar", 3, seed=1)
    other_lines = ["", "  ", "\t", f" {lines[1]}", "# a comment", "#é\t", f"{lines[2]}\t0.5"]
    for end, encoding in (("\n", "utf-8"), ("\r\n", "utf-8-sig")):
        file.write_bytes(end.join(["#" * 3000, *lines, *other_lines]).encode(encoding))
        openings = read_openings(file, "zanzibar", 3, seed=1)
        np.testing.assert_array_equal(openings.positions, plain.positions)
        np.testing.assert_array_equal(openings.actions, plain.actions)
        with pytest.raises(ValueError, match="3 different openings"):
            read_openings(file, "zanzibar", 4, seed=1)


def test_an_opening_must_not_end_the_game(tmp_path: Path) -> None:
    board, player, words = Board("kujifunza"), RandomAgent(1), list[str]()
    while not board.is_game_over():
        words.append(board.move_text(int(player.act(*board.batch())[0])))
        board.push(words[-1])
    file = tmp_path / "openings"
    file.write_text(f"{board.text()}\t{' '.join(words)}")
    with pytest.raises(ValueError, match="line 1: the opening ends the game"):
        read_openings(file, "kujifunza", 1, seed=1)
    text = " ".join(["south", *map(str, board.move_stack)])
    with pytest.raises(ValueError, match="an opening ends the game"):
        parse_openings([text], board.ruleset)


@every_ruleset("zanzibar")
def test_match_is_fair_and_reproducible(ruleset: str) -> None:
    match, same_match = (
        play_match(GreedyAgent(ruleset), RandomAgent(1), ruleset=ruleset, pairs=150, seed=5)
        for _ in range(2)
    )
    swapped = play_match(RandomAgent(1), GreedyAgent(ruleset), ruleset=ruleset, pairs=150, seed=5)
    assert match.score.low > 0.6 and swapped.score.high < 0.4
    assert match.moves.sum() == match.plies.sum() - 300 * 8
    np.testing.assert_array_equal(match.points, same_match.points)


def test_long_games_are_draws() -> None:
    players = RandomAgent(1), RandomAgent(2).act
    ended = list[int]()
    match = play_match(*players, pairs=20, max_plies=10, names=("a", "b"), progress=ended.append)
    assert match.score.draws > 20 and match.plies.max() == 10
    assert len(ended) == 2 and sum(ended) == 40
    ends = [str(Board.from_transcript(game).outcome()) for game in match.games]
    assert ends.count("cut short") == match.score.draws
    keys = "event", "south", "north", "opening plies"
    heads = [
        [game.get(key) for key in keys] for game in parse_transcripts("\n".join(match.games[:4]))
    ]
    assert heads == [
        [event, *names, "8"] for event in ("pair 1", "pair 2") for names in (("a", "b"), ("b", "a"))
    ]
    only_opening = play_match(*players, pairs=2, max_plies=8)
    assert only_opening.plies.tolist() == [[8, 8]] * 2 and only_opening.moves.tolist() == [0, 0]
    assert only_opening.score.draws == 4
    with pytest.raises(ValueError, match="pairs=0: expected an integer from 1"):
        play_match(*players, pairs=0)


def test_a_fault_loses_one_game() -> None:
    """The fault is in the second position of the first call; the other games go on."""

    class Fails(GreedyAgent):
        failed = False

        def act(self, positions: np.ndarray, legal: np.ndarray) -> np.ndarray:
            actions = super().act(positions, legal)
            if not self.failed:
                self.failed = True
                raise PlayerFault("me", TimeoutError("was\nlate"), actions[:1].tolist())
            return actions

    match, match_without_faults = (
        play_match(player, GreedyAgent(), pairs=3, names=("a", "b"))
        for player in (Fails(), GreedyAgent())
    )
    ends = [str(Board.from_transcript(game).outcome()) for game in match.games]
    assert ends[2] == "North wins: illegal action" and "\nend: " not in "".join(
        match_without_faults.games
    )
    assert match.faults == Pairs.from_json(match.to_json()).faults == (["was late"], [])
    assert match.plies[1, 0] == 8 and match.points[1, 0] == 0.0  # only the opening was played
    other_games = np.arange(6) != 2
    np.testing.assert_array_equal(
        match.plies.ravel()[other_games], match_without_faults.plies.ravel()[other_games]
    )
    np.testing.assert_array_equal(
        match.points.ravel()[other_games], match_without_faults.points.ravel()[other_games]
    )


def test_a_decision_is_not_an_estimate(says: Says) -> None:
    line = "match alphabeta:3 greedy --sprt 0 400 --pairs 200 --threads 1 --json "
    [row] = json.loads(says(line + "-"))["results"]
    assert row["sprt"] == "H1" and row["stopped_early"] and row["games"] < 400
    text = says(line.removesuffix("--json "))
    assert "H1 accepted: nearer to +400 than to +0." in text and "leans towards the verdict" in text
    assert "not decided within these games" in says("match greedy random --sprt 0 5 --pairs 3")
    line = "match greedy random --sprt 0 100 --pairs 20 --balance 1 "  # checked after 50 pairs
    [row] = json.loads(says(line + "--json -"))["results"]
    assert row["sprt"] == "H1" and not row["stopped_early"] and row["games"] == 40
    text = says(line)
    assert "H1 accepted" in text and "stopped the match" not in text


@every_ruleset("zanzibar", "dutch")
def test_the_numbers_are_those_of_the_games(ruleset: str, tmp_path: Path, says: Says) -> None:
    """Each number is counted again from the transcripts, in which both sides have their own
    names."""
    games, file = tmp_path / "games", tmp_path / "json"
    line = f"match new=greedy old=greedy random --pairs 30 --ruleset {ruleset}"
    out = says(f"{line} --games {games} --json {file}")
    report = json.loads(file.read_text())
    assert report["players"] == {"new": "greedy", "old": "greedy", "random": "random"}
    played = [(game, replay(game)) for game in parse_transcripts(games.read_text())]
    for row, opponent in zip(report["results"], ("old", "random"), strict=True):
        points: Counter[str | None] = Counter()
        plies, south = [], []
        for game, record in played:
            names = [game.get("south"), game.get("north")]
            if opponent in names:
                assert record.outcome is not None and record.outcome.winner is not None
                points[game.get("event")] += names[record.outcome.winner] == "new"
                plies.append(len(record.actions))
                south.append(record.outcome.winner == 0)
        won = sum(points.values())
        assert (row["opponent"], row["games"], row["drawn"]) == (opponent, 60, 0)
        assert (row["sprt"], row["stopped_early"]) == (None, False)
        assert (row["won"], row["lost"], row["score"]) == (won, 60 - won, won / 60)
        assert (len(plies), np.mean(plies)) == (60, row["mean_plies"])
        assert row["south_score"] == np.mean(south)
        counts = Counter(points.values())
        assert row["pairs_by_points"] == [counts[0], 0, counts[1], 0, counts[2]]
        [printed] = [text.split() for text in out.splitlines() if text.startswith(opponent)]
        assert printed[1:5] == [str(won), "0", str(60 - won), f"{100 * won / 60:.1f}"]


def test_tables_for_papers_and_programs(says: Says, fails: Fails) -> None:
    """The tables say how they were made, and name their units."""
    line = "match random greedy alphabeta:1 --pairs 2 "
    table = says(line + "--csv -")
    rows = list(csv.DictReader(table.splitlines()))
    assert "\r" not in table
    assert [row["opponent"] for row in rows] == ["greedy", "alphabeta:1"]
    openings = "random, --opening-plies 8 --balance 1"
    source = {"ruleset": "zanzibar", "seed": "1", "openings": openings}
    assert all(source.items() <= row.items() and row["commit"] for row in rows)
    source |= {"player": "random", "zero": "the opponent"}
    title = "random, zanzibar; Elo 0 is the opponent\n"
    latex = says(line + "--format latex")
    assert latex.startswith(f"% {title}") and "\\usepackage{booktabs}\n" in latex
    assert latex.count("\\\\\n") == 3 and r"score, \%" in latex
    assert all(f"% {name}: {value}\n" in latex for name, value in source.items())
    markdown = says(line + "--format markdown")
    head, comment, table = markdown.split("\n\n")
    assert head + "\n" == title and comment.startswith("<!--\n") and comment.endswith("\n-->")
    assert all(f"\n{name}: {value}\n" in comment for name, value in source.items())
    assert len(table.splitlines()) == 4 and "\n| greedy " in table
    note = "Too few games for a reliable 95% interval: greedy, alphabeta:1.\n"
    assert note in says(line)
    for option in ("--csv -", "--json -", "--format latex"):  # stdout has the table alone
        assert note in fails(f"{line} {option}", status=0)


def test_pictures_name_the_player_and_the_rules(tmp_path: Path, says: Says) -> None:
    """The metadata of pictures says how they were made."""
    says(f"match greedy random --ruleset kibao --pairs 5 --threads 1 --out {tmp_path}")
    with Image.open(tmp_path / "elo.png") as picture:
        assert picture.info["Title"] == "greedy, kibao"
        lines = picture.info["Description"].splitlines()
    assert {"player: greedy", "zero: the opponent", "seed: 1"} < {*lines}
    rows: list[dict[str, Any]] = [
        {"opponent": "random", "elo": 5.0, "elo_low": 4.0, "elo_high": 7.0},
        {"opponent": "swept", "elo": None, "elo_low": 9.0, "elo_high": None},
    ]
    for zero, words in (("the opponent", " above the opponent"), ("random", "; 0 is random")):
        figure = plot(rows, "opponent", "greedy, kibao", zero)
        assert figure.get_size_inches().tolist() == [6.0, 2.6]
        assert type(figure.get_layout_engine()).__name__ == "ConstrainedLayoutEngine"
        [axes] = figure.axes
        assert axes.get_xlabel() == f"Elo{words} (95% intervals)"
        assert figure.get_suptitle() == "greedy, kibao"
        assert [label.get_text() for label in axes.get_yticklabels()] == ["random", "swept"]
        assert axes.get_ylim() == (1.5, -0.5)  # the first row on top, and no point on the frame
        points: Any = axes.containers[0]
        assert points[0].get_xydata().tolist() == [[5, 0], [9, 1]]
        ends = [ends.tolist() for ends in points[2][0].get_segments()]
        assert ends == [[[4, 0], [7, 0]], [[9, 1], [9, 1]]]


@pytest.mark.parametrize("is_removed", [False, True])
def test_results_name_the_network_that_played(
    is_removed: bool, tmp_path: Path, says: Says, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When the games are reported, its file may hold another network, or be gone."""
    network = tmp_path / "mine.safetensors"
    network.write_bytes((GUIDES.parent / "kujifunza.safetensors").read_bytes())
    mark = digest(network)

    def play_and_replace(*args: Any) -> None:
        play(*args)
        network.unlink() if is_removed else network.write_bytes(b"")

    monkeypatch.setattr(cli_games, "play", play_and_replace)
    line = f"match mine={network} random --ruleset kujifunza --pairs 1 --threads 1 --json -"
    assert json.loads(says(line))["made_with"]["networks"] == {"mine": mark}


def test_a_program_is_called_by_its_own_name(says: Says, tmp_path: Path) -> None:
    """A program has the name that it gives itself, unless the command line names it, or a table
    could not show that name."""
    games, example = tmp_path / "games", ROOT / "training" / "examples" / "engine_bot.py"
    bot, mute, odd = (
        f"pipe:9s:{sys.executable} {tmp_path / name}" for name in ("bot", "mute", "odd")
    )
    code = example.read_text()
    (tmp_path / "bot").write_text(code)
    (tmp_path / "mute").write_text(code.replace('answer("name Front row")', "pass"))
    (tmp_path / "odd").write_text(code.replace("Front row", "Front, row"))
    for player, name in ((bot, "Front row"), (f"me={bot}", "me"), (mute, mute), (odd, odd)):
        line = f"match {shlex.quote(player)} random --pairs 1 --threads 1 --json - --games {games}"
        assert json.loads(says(line))["player"] == name
        assert f"south: {name}\n" in games.read_text()


def test_notes_about_faults_and_time() -> None:
    """No note is written for a solver, which may stop early, for a limit of nodes or plies, or in
    games with a clock."""
    limit = limit_ms("alphabeta:10ms", None)
    [note] = notes_of("a", limit, 0.7, [])
    assert note.startswith("a used only 0.7 of its 10 ms a move. If other programs took the rest, ")
    assert [*notes_of("a", limit, 4.5, ["late"])] == ["a lost 1 game by faults: late"]
    for spec in ("solver:1s", "alphabeta:6", "guided:5n", "greedy"):
        assert not [*notes_of("a", limit_ms(spec, None), 0.01, [])]
    assert not [*notes_of("a", limit_ms("alphabeta:10ms", Clock(1.0)), 0.01, [])]
    assert not [*notes_of("a", limit, 1.0, [])]  # a tenth is enough
    assert [*notes_of("a", limit, 1.0, ["late", "dead"])] == ["a lost 2 games by faults: late"]
    commit = frozenset({current_commit()})
    played = {"faults": [], "ms_a_move": 0.7, "elo": 9.0, "elo_low": None, "elo_high": None}
    few, enough = (
        {"player": name, "games": games, **played} for name, games in (("few", 8), ("enough", 10))
    )
    limits = {"few": 0.0, "enough": 0.0}
    assert [*notes([few, enough], limits, commit)] == [
        "Too few games for a reliable 95% interval: few."
    ]
    met = few | {"opponent": "b", "opponent_faults": ["late"], "opponent_ms_a_move": 0.7}
    assert [*notes([met | {"elo": None}], limits | {"b": 0.0}, commit | {"older"})] == [
        "against b, b lost 1 game by faults: late",
        f"Some games were played by other versions of the code, older; this is {current_commit()}.",
    ]


def test_a_move_takes_no_time_to_compile(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another player of the same name makes a first move, once, so compiling takes no time of the
    match."""
    player = MagicMock()
    monkeypatch.setattr(registry, "load", lambda *args, **options: player)
    registry.warm_up.cache_clear()
    for _ in range(2):
        registry.warm_up("greedy", get_ruleset("zanzibar"))
    player.choose.assert_called_once()


class Full(io.StringIO):
    """A stream whose disk is full, or whose reader is gone."""

    def write(self, *anything: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize(
    ("line", "files"),
    [
        ("match random greedy --pairs 1 --games games --json json --csv csv", "games json csv"),
        ("match random greedy --pairs 1 --games broken --json json --csv csv", "json csv"),
        ("tournament random greedy --pairs 1 --threads 1 --out .", "table.md table.json elo.png"),
        ("rate greedy --precision 150 --threads 1 --json json --out .", "json table.json elo.png"),
        ("blunders random --ruleset kujifunza --json json --csv csv", "json csv"),
        ("bench engine --batches 1 --threads 1 --rounds 1 --seconds 0.01 --json json", "json"),
        ("curve metrics.csv --out c.png", "c.png"),
    ],
)
def test_files_are_written_although_nothing_can_be_printed(
    line: str, files: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files are written even if results, progress and notes cannot be printed, or if another file
    cannot be written."""
    monkeypatch.chdir(tmp_path)
    Path("metrics.csv").write_text("steps,entropy\n1,2\n2,3\n")
    for stream in ("stdout", "stderr"):
        monkeypatch.setattr(sys, stream, Full())
    if "broken" in line:
        monkeypatch.setattr(event_report, "write_atomically", Full().write)
    assert bao(line.split()) == (0 if "curve" in line else 2)
    assert all((tmp_path / name).stat().st_size for name in files.split())
