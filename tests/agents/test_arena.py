"""Test paired matches, their openings and their statistics."""

from __future__ import annotations

import csv
import errno
import json
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bao_agents.arena import scheduler
from bao_agents.arena.elo import Sprt, score_pairs, wilson_interval
from bao_agents.arena.event import Event
from bao_agents.arena.openings import BALANCED, MatchOpenings, draw_openings, read_openings
from bao_agents.arena.pairs import Pairs, play_match
from bao_agents.arena.plan import Gauntlet, Part
from bao_agents.arena.report import notes_of
from bao_agents.arena.scheduler import Clock, Workers
from bao_agents.cli import games as cli_games
from bao_agents.cli.main import main as bao
from bao_agents.evaluators.tables import SCALE
from bao_agents.players import registry
from bao_agents.players.base import NamedPlayer
from bao_agents.players.faults import PlayerFault
from bao_agents.search.alphabeta.player import AlphaBetaAgent
from bao_agents.search.limits import Limit
from bao_agents.support import files
from bao_agents.support.progress import Progress
from bao_env.board import Board
from bao_env.bots import GreedyAgent, RandomAgent
from bao_env.engine.batch import Engine
from bao_env.engine.kernel import legal_of
from bao_env.engine.position import unpack
from bao_env.engine.ruleset import get_ruleset
from bao_env.notation.transcript import parse_transcripts, replay
from tests.conftest import Capsys, Says
from tests.positions import OPENING
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


def test_correlated_pairs_change_the_interval() -> None:
    """Two equal games of a pair count as one; a pair of a win and a loss has no variance."""
    first = np.arange(400) % 2.0
    second = np.concatenate([first[:200], 1 - first[200:]])
    doubled, mixed = (score_pairs(np.stack([first, other], axis=1)) for other in (first, second))
    assert (doubled.low, doubled.high) == pytest.approx(wilson_interval(0.5, 399))
    assert (mixed.low, mixed.high) == pytest.approx(wilson_interval(0.5, 2 * 399))


@every_ruleset("zanzibar")
def test_openings(ruleset: str) -> None:
    """They differ and depend on the seed; games that begin with them are replayed below."""
    openings = draw_openings(ruleset, 60, 8, seed=3)
    assert len({position.tobytes() for position in openings.positions}) == 60
    assert all(unpack(position).ply == 8 for position in openings.positions)
    fewer, other = (draw_openings(ruleset, 25, 8, seed=seed).positions for seed in (3, 4))
    np.testing.assert_array_equal(openings[:25].positions, fewer)
    assert not np.array_equal(other, fewer)


def test_openings_are_balanced() -> None:
    """A search of six plies gives no side more than the limit; without a limit, some have more."""
    search, rules = AlphaBetaAgent("zanzibar", Limit(plies=6)), Engine("zanzibar").rules

    def largest_value(balance: float | None) -> float:
        positions = draw_openings("zanzibar", 100, 8, 5, balance).positions
        legal = np.array([legal_of(rules, position) for position in positions], np.uint64)
        return float(np.abs(search.values(positions, legal)).max() / SCALE)

    assert largest_value(None) > 1.5
    assert largest_value(0.5) <= 0.5


def test_only_matches_of_searches_are_balanced(says: Says, monkeypatch: pytest.MonkeyPatch) -> None:
    """Others must not wait until a search has compiled."""

    def balance(line: str) -> object:
        return json.loads(says(f"match {line} --pairs 1 --threads 1 --json -"))["balance"]

    asked = [balance("greedy alphabeta:1"), balance("random greedy --balance 2")]
    assert asked == [1.0, 2.0]
    monkeypatch.setattr(AlphaBetaAgent, "__init__", lambda *args, **how: 1 / 0)
    assert balance("random greedy") is None


def test_balanced_openings() -> None:
    """The shipped file: its lines can be read, all positions differ, and none is decided."""
    openings = read_openings("balanced", "zanzibar", 2000, seed=1)
    assert len({position.tobytes() for position in openings.positions}) == 2000
    rules = Engine("zanzibar").rules
    legal = np.array([legal_of(rules, position) for position in openings.positions], np.uint64)
    values = AlphaBetaAgent("zanzibar", Limit(plies=6)).values(openings.positions, legal)
    assert legal.all() and np.abs(values).max() <= SCALE


def test_match_with_openings_from_a_file(tmp_path: Path) -> None:
    """They may differ in length; each is played from both seats."""
    moves = "A6L", "A7R A6L"
    boards = [Board.from_text(OPENING, moves=line.split()) for line in moves]
    file, games = tmp_path / "openings", tmp_path / "games"
    lines = [f"{board.text()}\t{line}\n" for board, line in zip(boards, moves, strict=True)]
    file.write_text("".join(lines))
    words = ["match", "greedy", "random", "--pairs", "2"]
    assert bao([*words, "--openings", str(file), "--games", str(games)]) == 0
    played = [tuple(replay(game).actions) for game in parse_transcripts(games.read_text())]
    openings = [tuple(board.move_stack) for board in boards]
    assert [sum(game[: len(o)] == o for game in played) for o in openings] == [2, 2]


def _read(content: bytes, count: int) -> MatchOpenings:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "openings"
        file.write_bytes(content)
        return read_openings(file, "zanzibar", count, seed=1)


BALANCED_LINES = BALANCED.read_text().splitlines()
FILLERS = st.sampled_from(["", "  ", "\t", "# white: a comment", "#é\t", "#" * 3000])


@settings(max_examples=50, deadline=None)
@given(
    st.lists(st.sampled_from(BALANCED_LINES), min_size=1, max_size=5, unique=True),
    st.lists(FILLERS, max_size=6),
    st.randoms(use_true_random=False),
    st.sampled_from(["\n", "\r\n"]),
    st.sampled_from(["utf-8", "utf-8-sig"]),
)
def test_openings_between_comments_are_the_same(
    lines: list[str], fillers: list[str], rng: random.Random, end: str, encoding: str
) -> None:
    """So are they with a byte order mark, and with the line ends of Windows."""
    plain = _read("\n".join(lines).encode(), len(lines))
    for filler in fillers:
        lines.insert(rng.randint(0, len(lines)), filler)
    found = _read((end.join(lines) + end).encode(encoding), len(plain))
    np.testing.assert_array_equal(found.positions, plain.positions)
    np.testing.assert_array_equal(found.actions, plain.actions)


@settings(max_examples=50, deadline=None)
@given(
    st.lists(st.sampled_from(BALANCED_LINES), min_size=1, max_size=5, unique=True),
    st.lists(st.sampled_from(["{}", " {}", "{}\t0.5", "{}\t", "{}  "]), min_size=1, max_size=20),
    st.randoms(use_true_random=False),
)
def test_an_opening_counts_once(lines: list[str], forms: list[str], rng: random.Random) -> None:
    """Its position decides, however often and with whatever after the moves it is written."""
    repeated = lines + [form.format(rng.choice(lines)) for form in forms]
    found = _read("\n".join(repeated).encode(), len(lines))
    alone = _read("\n".join(lines).encode(), len(lines))
    np.testing.assert_array_equal(found.positions, alone.positions)
    with pytest.raises(ValueError, match=f"{len(lines)} different openings"):
        _read("\n".join(repeated).encode(), len(lines) + 1)


MOVES = st.text("ABab12345678LR<>*/- \t", max_size=30) | st.sampled_from(["A6L", "A7R A6L"])


@settings(max_examples=100, deadline=None)
@given(
    st.binary(max_size=200)
    | st.builds(
        lambda text, encoding: text.encode(encoding, "replace"),
        st.builds("{}\t{}".format, st.just(OPENING) | st.text() | st.just("9" * 5000), MOVES),
        st.sampled_from(["utf-8", "utf-16", "utf-32-be", "latin-1", "cp037"]),
    )
)
def test_wrong_openings_give_one_short_line(content: bytes) -> None:
    """It names the file, and quotes little of it."""
    try:
        found = _read(content, 1)
    except ValueError as error:
        assert "openings" in str(error) and str(error).isprintable()
        assert len(str(error)) < 700
    else:
        assert len(found) == 1


@every_ruleset("zanzibar")
def test_match_is_fair_and_reproducible(ruleset: str) -> None:
    matches = [
        play_match(GreedyAgent(ruleset), RandomAgent(1), ruleset=ruleset, pairs=150, seed=5)
        for _ in range(2)
    ]
    np.testing.assert_array_equal(matches[0].points, matches[1].points)
    swapped = play_match(RandomAgent(1), GreedyAgent(ruleset), ruleset=ruleset, pairs=150, seed=5)
    assert matches[0].score.low > 0.6 and swapped.score.high < 0.4


def test_long_games_are_draws() -> None:
    match = play_match(RandomAgent(1), RandomAgent(2), pairs=20, max_plies=10)
    assert match.score.draws > 20 and match.plies.max() == 10


def test_a_fault_loses_one_game() -> None:
    """Here in the second position of the first call; the other games go on."""

    class Fails(GreedyAgent):
        failed = False

        def act(self, positions: np.ndarray, legal: np.ndarray) -> np.ndarray:
            actions = super().act(positions, legal)
            if not self.failed:
                self.failed = True
                raise PlayerFault("me", "was late", actions[:1].tolist())
            return actions

    match = play_match(Fails(), GreedyAgent(), pairs=3, seed=2)
    assert match.faults == (["was late"], [])
    assert match.plies[1, 0] == 8 and match.points[1, 0] == 0.0  # the opening alone
    whole = play_match(GreedyAgent(), GreedyAgent(), pairs=3, seed=2)
    others = np.ones((3, 2), np.bool_)
    others[1, 0] = False
    np.testing.assert_array_equal(match.points[others], whole.points[others])
    np.testing.assert_array_equal(match.plies[others], whole.plies[others])


@every_ruleset("zanzibar", "dutch")
def test_games_are_kept(ruleset: str) -> None:
    """Each game replays as a transcript, with the winner that the match counted."""
    match = play_match(
        GreedyAgent(ruleset),
        RandomAgent(1),
        ruleset=ruleset,
        pairs=6,
        seed=5,
        names=("greedy", "random"),
    )
    assert len(match.games) == 12
    chosen = 0
    for i, text in enumerate(match.games):
        (transcript,) = parse_transcripts(text)
        played = replay(transcript)
        assert played.outcome is not None
        seat = i % 2  # of the first player
        assert transcript.get(("south", "north")[seat]) == "greedy"
        assert match.points[i // 2, seat] == (played.outcome.winner == seat)
        assert len(played.actions) == match.plies[i // 2, seat]
        chosen += len(played.actions) - 8
    assert match.moves.sum() == chosen


def test_results_add_up() -> None:
    """Here by hand. The second player's results are the first one's from the other side."""
    one = Pairs(
        points=np.array([[1.0, 0.5]]),
        plies=np.array([[30, 41]]),
        moves=np.array([10, 20]),
        seconds=np.array([1.0, 0.5]),
        faults=([], ["late"]),
        commits=frozenset({"a"}),
        games=("first", "second"),
    )
    other = Pairs(points=np.array([[0.0, 0.0], [0.0, 1.0]]), moves=np.array([30, 5]))
    both = one + other
    assert both.points.tolist() == [[1.0, 0.5], [0.0, 0.0], [0.0, 1.0]] and len(both) == 3
    assert (both.score.wins, both.score.draws, both.score.losses) == (2, 1, 3)
    assert both.ms_a_move.tolist() == [25.0, 20.0]
    assert both.faults == ([], ["late"]) and both.games == ("first", "second")
    back = one.swapped()
    assert back.points.tolist() == [[0.5, 0.0]] and back.plies.tolist() == [[41, 30]]
    assert back.ms_a_move.tolist() == [25.0, 100.0] and back.faults == (["late"], [])
    assert Pairs().ms_a_move.tolist() == [0.0, 0.0]


class Backwards(Workers):
    """Workers of whom the last one always ends first."""

    def play(
        self, event: Event, parts: Sequence[Part], bar: Progress, clock: Clock
    ) -> Iterator[tuple[Part, Pairs]]:
        yield from reversed([*super().play(event, parts, bar, clock)])


def test_workers_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither their number, nor which ends first. Each part has its own seed."""
    monkeypatch.setattr(scheduler, "LocalPool", ThreadPoolExecutor)
    event = Event(
        {"mean": "greedy", "lot": "random", "deep": "alphabeta:3"},
        get_ruleset("zanzibar"),
        draw_openings("zanzibar", 130, 8, seed=3),
        seed=4,
    )

    def play(opponent: str, workers: Workers, sprt: Sprt | None = None) -> Pairs:
        results: dict[Part, Pairs] = {}
        with workers, Progress(disable=True) as bar:
            plan = Gauntlet("mean", [opponent], 130, sprt)
            scheduler.play(event, plan, workers, bar, results)
        return sum(results.values(), Pairs())

    here = play("lot", Workers(1))
    there = play("lot", Backwards(1))
    monkeypatch.setattr(scheduler, "START_SECONDS", 0.0)
    pool = play("lot", Workers(2))
    assert len(here) == 130
    for other in (there, pool):
        np.testing.assert_array_equal(other.points, here.points)
        np.testing.assert_array_equal(other.plies, here.plies)
    sprt = Sprt(0, 100)
    stopped = [play("deep", kind, sprt) for kind in (Workers(1), Workers(2), Backwards(1))]
    assert [len(pairs) for pairs in stopped] == [54] * 3  # the first 50, in parts of 9
    assert sprt.verdict(stopped[0].score.pair_counts) == "H0"
    for other in stopped[1:]:
        np.testing.assert_array_equal(other.points, stopped[0].points)


def test_a_decision_is_not_an_estimate(says: Says) -> None:
    line = "match alphabeta:3 greedy --sprt 0 400 --pairs 200 --threads 1 --json "
    [row] = json.loads(says(line + "-"))["results"]
    assert row["sprt"] == "H1" and row["stopped_early"] and row["games"] < 400
    said = says(line.removesuffix("--json "))
    assert "H1 accepted: nearer to +400 than to +0." in said and "leans to the verdict" in said


def test_a_match_goes_on_from_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, says: Says
) -> None:
    """With its games; a part that is damaged is played again."""
    line = f"match greedy random --pairs 40 --threads 1 --out {tmp_path} --games {tmp_path}/games"
    text = says(line)
    games = (tmp_path / "games").read_bytes()
    [first, *_] = sorted((tmp_path / "results").rglob("*.json"))
    first.write_text("{}")
    played = []
    play = Event.play

    def count(event: Event, part: Part, *how: Any) -> Pairs:
        played.append(part.numbers)
        return play(event, part, *how)

    monkeypatch.setattr(Event, "play", count)
    again = says(line)
    assert played == [(0, 1, 2)] and (tmp_path / "games").read_bytes() == games
    assert again.splitlines()[:5] == text.splitlines()[:5]
    report = json.loads((tmp_path / "table.json").read_text())
    assert [row["games"] for row in report["results"]] == [80]


def test_the_numbers_are_those_of_the_games(tmp_path: Path, says: Says) -> None:
    """Each is counted again from the transcripts, in which both sides have their own names."""
    games, file = tmp_path / "games", tmp_path / "json"
    line = f"match new=greedy old=greedy random --pairs 30 --games {games} --json {file}"
    out = says(line)
    report = json.loads(file.read_text())
    assert report["players"] == {"new": "greedy", "old": "greedy", "random": "random"}
    assert [row["opponent"] for row in report["results"]] == ["old", "random"]
    played = parse_transcripts(games.read_text())
    for row in report["results"]:
        won: Counter[str | None] = Counter()
        plies = []
        by_pair: Counter[str | None] = Counter()
        for game in played:
            names = [game.get("south"), game.get("north")]
            if row["opponent"] not in names:
                continue
            seat = game.stated_winner()
            won[None if seat is None else names[seat]] += 1
            by_pair[game.get("event")] += 0 if seat is None else 2 * (names[seat] == "new")
            plies.append(len(replay(game).actions))
        assert won[None] == row["drawn"] == 0  # no game of bao is drawn before 1,000 plies
        assert (won["new"], won[row["opponent"]]) == (row["won"], row["lost"])
        assert len(plies) == row["games"] == 60 and np.mean(plies) == row["mean_plies"]
        assert row["score"] == row["won"] / 60
        assert [*by_pair.values()].count(4) == row["pairs_by_points"][4]
        [printed] = [text.split() for text in out.splitlines() if text.startswith(row["opponent"])]
        assert printed[1:4] == [str(row[key]) for key in ("won", "drawn", "lost")]
        assert printed[4] == f"{100 * row['score']:.1f}"


def test_tables_for_papers_and_programs(says: Says) -> None:
    """They say how they were made, and in which units."""
    line = "match random greedy alphabeta:1 --pairs 2 "
    rows = list(csv.DictReader(says(line + "--csv -").splitlines()))
    assert [row["opponent"] for row in rows] == ["greedy", "alphabeta:1"]
    assert all(row["player"] == "random" and float(row["ms_a_move"]) >= 0 for row in rows)
    made = {"ruleset": "zanzibar", "seed": "1"}
    made["openings"] = "random, --opening-plies 8 --balance 1"
    assert all(made.items() <= row.items() and row["commit"] for row in rows)
    latex = says(line + "--format latex")
    assert latex.count("\\\\\n") == 3 and r"score, \%" in latex and "ms a move" in latex
    for name, value in made.items():
        assert f"% {name}: {value}\n" in latex
    table = says(line + "--format markdown").splitlines()
    assert len(table) == 4 and table[2].startswith("| greedy ")


def test_notes_about_faults_and_time() -> None:
    """A solver may stop early, and a limit of nodes or plies takes the time it takes."""
    assert [*notes_of("a", "alphabeta:10ms", 0.7, [])] == [
        "a had 0.7 of its 10 ms a move: if the machine was busy, it plays better on an idle one; "
        "use fewer --threads, or a limit of nodes"
    ]
    assert [*notes_of("a", "alphabeta:10ms", 4.5, ["late"])] == ["a lost 1 game by faults: late"]
    for spec in ("solver:1s", "alphabeta:6", "guided:5n", "greedy"):
        assert not [*notes_of("a", spec, 0.1, [])]


def test_a_move_takes_no_time_to_compile(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another player of that name makes the first move."""
    moves = []

    class Slow(GreedyAgent):
        def act(self, positions: np.ndarray, legal: np.ndarray) -> np.ndarray:
            moves.append(id(self))
            return super().act(positions, legal)

    def load(*args: object, **how: object) -> NamedPlayer:
        return NamedPlayer("slow", Slow())

    monkeypatch.setattr(registry, "load", load)
    registry.warm_up.cache_clear()
    for _ in range(2):
        registry.warm_up("greedy", get_ruleset("zanzibar"))
    assert len(moves) == 1


@pytest.mark.parametrize(("module", "failing"), [(cli_games, "games"), (files, "json")])
def test_results_are_kept_if_a_file_cannot_be_written(
    module: ModuleType,
    failing: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Capsys,
) -> None:
    def fail(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(module, "write_atomically", fail)
    monkeypatch.chdir(tmp_path)
    assert (
        bao(["match", "random", "greedy", "--pairs", "1", "--games", "games", "--json", "json"])
        == 2
    )
    assert {file.name for file in tmp_path.iterdir()} == {"games", "json"} - {failing}
    assert "greedy" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("line", "files"),
    [
        ("match random greedy --pairs 1 --games games --json json --csv csv", "games json csv"),
        ("tournament random greedy --pairs 1 --threads 1 --out .", "table.md table.json elo.png"),
        ("rate greedy --precision 150 --threads 1 --json json", "json"),
        (
            "blunders random --ruleset kujifunza --positions 5 --plies 10 30 --sources random "
            "--cache . --json json --plot plot.png",
            "json plot.png",
        ),
    ],
)
def test_files_are_written_although_nothing_can_be_printed(
    line: str, files: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As with a full disk behind ``>``, or a pipe that is closed."""

    class Full:
        def write(self, text: str) -> int:
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "stdout", Full())
    assert bao(line.split()) == 2
    assert all((tmp_path / name).stat().st_size for name in files.split())
