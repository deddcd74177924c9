"""Test players: the simple bots, names of players, and the arrays that all of them check."""

from __future__ import annotations

import calendar
import copy
import hashlib
import pickle
import shutil
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bao_agents
from bao_agents.arena.pairs import play_match
from bao_agents.cli.player_arguments import parse_players
from bao_agents.nets.checkpoint_files import CHECKPOINTS, GUIDES
from bao_agents.players.fingerprint import fingerprint
from bao_agents.players.player import NamedPlayer, new_games
from bao_agents.players.registry import PLAYERS, parse
from bao_agents.search.limits import Limit
from bao_agents.search.player import as_games
from bao_env import RULESETS, Board, check_agent
from bao_env.bots import Agent, GreedyAgent, RandomAgent, get_agent
from bao_env.engine.action import actions_of
from bao_env.engine.kernel import legal_of, play
from bao_env.engine.position import turn_of, unpack
from tests.conftest import Says
from tests.positions import STUCK, draw, pack_texts, seeds_of


@pytest.mark.parametrize("ruleset", RULESETS)
def test_greedy_captures_most(ruleset: str) -> None:
    """Greedy wins if it can; otherwise it gains the most seeds, counted on the board and in the
    store."""
    rules = RULESETS[ruleset].kernel
    positions, legal = draw(ruleset)
    actions = GreedyAgent(ruleset).act(positions, legal)
    captures = wins = 0
    for position, bits, action in zip(positions, legal, actions, strict=True):
        mover = turn_of(position)
        gains, winning, plain = {}, [], True
        for option in actions_of(bits):
            after = position.copy()
            result = play(rules, after, np.uint64(option))
            gains[option] = seeds_of(after, mover) - seeds_of(position, mover)
            if result == 1:
                winning.append(option)
            # Counting seeds does not tell a loss from a waiting capture.
            plain &= result == 0 and unpack(after).pending is None
        best = max(gains.values(), default=0)
        captures += plain and best > 0
        wins += bool(winning)
        if winning:
            assert action in winning
        elif plain and gains:
            assert action == min(a for a, gain in gains.items() if gain == best)
    assert captures > 50 and wins


def test_random_agent_is_uniform() -> None:
    positions, legal = (np.repeat(array, 4000, axis=0) for array in draw("zanzibar", 1))
    counts = np.bincount(RandomAgent(0).act(positions, legal), minlength=64)
    choices = actions_of(legal[0])
    assert counts[choices].sum() == 4000 and len(choices) > 1
    assert counts[choices].min() > 0.8 * 4000 / len(choices)
    with pytest.raises(ValueError, match=r"legal: expected .*uint64\[4000\], not uint64\[3999\]"):
        RandomAgent(0).act(positions, legal[1:])
    one_game = positions[:1], legal[:1]
    assert len({int(RandomAgent(seed).act(*one_game)[0]) for seed in range(40)}) > 1
    bot, rival = (RandomAgent(seed) for seed in np.random.SeedSequence(0).spawn(2))
    assert not np.array_equal(bot.act(positions, legal), rival.act(positions, legal))


@pytest.mark.parametrize("spec", ["random", "mcts:20"])
def test_choice_depends_on_the_seed(spec: str) -> None:
    arrays = draw("zanzibar")
    first, repeated, reseeded = (
        bao_agents.load(spec, seed=seed).act(*arrays).tolist() for seed in (3, 3, 4)
    )
    assert first == repeated != reseeded
    with pytest.raises(ValueError, match=f"{spec} keeps its seed: load it again"):
        bao_agents.load(spec).reseed(4)
    bao_agents.load("greedy").reseed(4)  # it has no random choices


@pytest.mark.parametrize(
    ("spec", "name", "fields"),
    [
        ("alphabeta:06", "alphabeta", ("", Limit(plies=6))),
        ("alphabeta:100 ms", "alphabeta", ("", Limit(seconds=0.1))),
        ("guided:kibao:20000n", "guided-by", ("kibao", Limit(nodes=20000))),
        ("guided:2s", "guided", ("", Limit(seconds=2))),
        ("mcts:2s", "mcts", ("", Limit(seconds=2))),
        ("kibao", "network", ("kibao", Limit())),
        (
            f"{CHECKPOINTS}/kibao.safetensors",
            "network",
            (f"{CHECKPOINTS}/kibao.safetensors", Limit()),
        ),
    ],
)
def test_parse(spec: str, name: str, fields: tuple[object, ...]) -> None:
    parsed = parse(spec)
    assert parsed.kind.name == name
    assert (parsed.checkpoint, parsed.limit) == fields
    assert (parsed.path is None) == (not parsed.checkpoint)
    if parsed.path is not None:
        assert parsed.path.samefile(CHECKPOINTS / f"{parsed.path.stem}.safetensors")


@pytest.mark.parametrize("spec", ["alphabeta:300ms", "mcts:300ms", "solver:300ms"])
def test_search_from_two_threads_raises(spec: str) -> None:
    """Two threads would use the same memory."""
    positions, legal = draw("zanzibar")
    choices = np.flatnonzero(legal & (legal - np.uint64(1)))[:1]
    positions, legal = positions[choices], legal[choices]
    player = bao_agents.load(spec, threads=1)
    player.act(positions, legal)  # compiles
    together = threading.Barrier(2)

    def act() -> str:
        together.wait()
        try:
            player.act(positions, legal)
        except RuntimeError as error:
            return str(error)
        return "played"

    with ThreadPoolExecutor(2) as pool:
        outcomes = sorted(future.result() for future in [pool.submit(act), pool.submit(act)])
    assert outcomes[0] == "played"
    assert "is in use by another thread" in outcomes[1]
    player.act(positions, legal)


SEARCHES = (
    "alphabeta:4",
    "guided:1000n",
    "mcts:50",
    "solver:3000n",
    "zanzibar",
)


@pytest.mark.parametrize("spec", SEARCHES)
def test_choice_depends_on_the_position_alone(spec: str) -> None:
    """A choice does not depend on the batch, on threads or on earlier searches; an ended game gets
    0.

    The arrays may be views, and may be empty; refused/players.txt has arrays that are refused.
    """
    positions, legal = draw("zanzibar", 60, 40)
    legal[4] = 0
    single, double = (bao_agents.load(spec, seed=5, threads=threads) for threads in (1, 2))
    check_agent(single, deterministic=True)
    actions = single.act(positions, legal)
    assert (
        actions[::2].tolist() == double.act(positions[::2], legal[::2]).tolist() and actions[4] == 0
    )
    assert single.act(positions[:0], legal[:0]).shape == (0,)


@pytest.mark.parametrize("spec", ["random", "greedy", *SEARCHES])
def test_plays_only_what_a_mask_allows(spec: str) -> None:
    """The masks leave out some legal actions, even actions proven to win or not to lose."""
    positions, legal = draw("zanzibar", 80, (20, 50), seed=4)
    player, rng = bao_agents.load(spec, threads=2), np.random.default_rng(4)
    best = np.uint64(1) << player.act(positions, legal).astype(np.uint64)
    for masks in (legal & ~best, legal & rng.integers(1 << 64, size=len(legal), dtype=np.uint64)):
        action_bits = np.uint64(1) << player.act(positions, masks).astype(np.uint64)
        assert ((action_bits & masks != 0) | (masks == 0)).all()
        assert np.count_nonzero(masks & (masks - np.uint64(1))) > 20


@pytest.mark.parametrize(
    ("spec", "limit"),
    [
        ("alphabeta:3", Limit(nodes=300)),
        ("guided:2", Limit(nodes=300)),
        ("mcts:50", Limit(nodes=20)),
        ("solver:3000n", Limit(nodes=400)),
    ],
)
def test_a_limit_of_a_call_replaces_the_players(spec: str, limit: Limit) -> None:
    positions, legal = draw("zanzibar", 40, 30)
    head, _, _ = spec.rpartition(":")
    unit = "" if head == "mcts" else "n"
    player, limited = bao_agents.load(spec), bao_agents.load(f"{head}:{limit.nodes}{unit}")
    expected = limited.act(positions, legal).tolist()
    before = player.act(positions, legal).tolist()
    assert player.act(positions, legal, limit=limit).tolist() == expected != before
    assert player.act(positions, legal).tolist() == before


def play_on(
    player: NamedPlayer, order: list[int], size: int, *, with_games: bool = True
) -> np.ndarray:
    """Let a player play both seats of eight games for 14 plies; return the actions, [8, 14].

    Args:
        player: the player.
        order: the games, in the order in which they are asked.
        size: the number of games that are asked together, ply by ply; the others wait.
        with_games: whether the player gets the games' numbers.
    """
    rules, (starts, _) = RULESETS["zanzibar"].kernel, draw("zanzibar", 8, 6, seed=2)
    over, _ = pack_texts([STUCK], RULESETS["zanzibar"])
    played = np.full((8, 14), -1)
    for low in range(0, 8, size):
        part = order[low : low + size]
        positions, numbers = starts[part], new_games(len(part))
        for ply in range(14):
            legal = np.array([legal_of(rules, position) for position in positions], np.uint64)
            actions = player.act(positions, legal, games=numbers if with_games else None)
            for i in np.flatnonzero(legal):
                played[part[i], ply] = actions[i]
                if play(rules, positions[i], np.uint64(actions[i])):
                    positions[i] = over[0]
    return played


@pytest.mark.parametrize("spec", ["alphabeta:500n", "guided:500n", "solver:1000n"])
def test_a_choice_depends_on_the_game_so_far(spec: str) -> None:
    """A choice does not depend on the other games of a batch, their order or the threads."""
    single, double = (bao_agents.load(spec, threads=threads) for threads in (1, 2))
    assert single.remembers
    expected = play_on(single, list(range(8)), 8)
    for player, order, size in (
        (single, [3, 1, 7, 0, 2, 6, 5, 4], 8),
        (single, list(range(8)), 1),
        (double, list(range(8)), 3),
    ):
        np.testing.assert_array_equal(play_on(player, order, size), expected)
    assert (play_on(single, list(range(8)), 8, with_games=False) != expected).any()
    single.remembers = False
    assert (play_on(single, list(range(8)), 8) != expected).any()


@pytest.mark.parametrize("remembers", [True, False])
@pytest.mark.parametrize("limit", [None, Limit(nodes=5)])
def test_choose_passes_on_the_game_and_the_limit(remembers: bool, limit: Limit | None) -> None:
    """`choose` gives the game's number only to a player that remembers games."""

    class Search:
        limit = Limit(nodes=1)
        searches_together = True

        def act(self, positions: Any, legal: Any, **options: Any) -> Any:
            self.options = options
            return np.array([actions_of(bits)[0] for bits in legal])

    agent = Search()
    player = NamedPlayer("search", agent)
    assert repr(player) == "<player search>"
    player.remembers = remembers
    player.choose(Board(), limit, game=0)
    options = {name: np.ravel(value).tolist() for name, value in agent.options.items()}
    assert options.pop("games", None) == ([0] if remembers else None)
    assert options == {"together": [True]} | ({} if limit is None else {"limit": [*limit]})
    player.act(*Board().batch())
    assert agent.options == {}
    player.limit = None
    with pytest.raises(ValueError, match="player search takes no limit"):
        player.choose(Board(), Limit(nodes=5))


def test_the_numbers_of_games_have_63_bits() -> None:
    numbers = [0, 2**63 - 1]
    assert as_games(numbers, 2).tolist() == numbers
    for wrong in (np.array([-1, 0]), np.array([0, 2**63], np.uint64), [0, 0]):
        with pytest.raises(ValueError, match="games: expected"):
            as_games(wrong, 2)


def test_matches_play_no_more_games_than_are_remembered() -> None:
    """A player with room for four games, or for two, remembers all ten games of a match from the
    first move on."""

    class Counted(NamedPlayer):
        def __init__(self, limit: int) -> None:
            super().__init__("counted", bao_agents.load("guided:300n", threads=1))
            self.most, self.asked = limit, 0

        @property
        def most_games(self) -> int:  # type: ignore[override]
            return self.most

        def act(self, positions: Any, legal: Any, **options: Any) -> Any:
            self.asked = max(self.asked, len(legal))
            return super().act(positions, legal, **options)

    players = [Counted(limit) for limit in (20, 4, 2)]
    greedy = bao_agents.load("greedy")
    plies = [play_match(player, greedy, pairs=5, seed=1).plies.tolist() for player in players]
    assert plies[0] == plies[1] == plies[2]
    # In the first ply it plays South in half of the games.
    assert [player.asked for player in players[1:]] == [2, 1] and players[0].asked > 4


@pytest.mark.parametrize("spec", SEARCHES)
@pytest.mark.parametrize(
    "duplicate", [copy.deepcopy, lambda player: pickle.loads(pickle.dumps(player))]
)
def test_a_copy_is_small_and_plays_alike(spec: str, duplicate: Callable[[Agent], Agent]) -> None:
    """A copy does not contain the memory of the search or the compiled network."""
    arrays = draw("zanzibar", 20)
    player = bao_agents.load(spec, seed=5, threads=2)
    expected = player.act(*arrays).tolist()
    assert duplicate(player).act(*arrays).tolist() == expected
    limit = 3_000_000 if "guided" in spec else 700_000 if "zanzibar" in spec else 2_000
    assert len(pickle.dumps(player)) < limit


def test_run_is_a_player(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run plays its final network, or else its last one, or else its last generation, under the
    run's name."""
    run = tmp_path / "a0"
    run.mkdir()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match="a0' has no checkpoint"):
        parse(str(run))
    for stem, title in (
        ("step-900", "a0/step-900"),
        ("step-1000", "a0/step-1000"),
        ("step-99", "a0/step-1000"),
        ("last", "a0/last"),
        ("final", "a0"),
    ):
        shutil.copy(CHECKPOINTS / "zanzibar.safetensors", run / f"{stem}.safetensors")
        assert parse(str(run)).title == bao_agents.load(run).name == title
    assert parse(f"guided:{run}/step-99.safetensors:3").title == "guided:a0/step-99:3"
    Path("d").mkdir()  # "guided" has this letter, too
    shutil.copy(run / "last.safetensors", "d")
    assert parse("guided:d:3").title == "guided:d/last:3"
    assert parse_players([f"{run}", f"{run}/last.safetensors", "b=zanzibar"]) == {
        "a0": f"{run}",
        "a0/last": f"{run}/last.safetensors",
        "b": "zanzibar",
    }
    run.rename("zanzibar")
    with pytest.raises(ValueError, match=r"a shipped checkpoint, and a run in this folder"):
        parse("zanzibar")
    assert Path("zanzibar/final.safetensors").samefile(parse("./zanzibar").path or "")


def test_players_are_listed_with_their_elo(
    says: Says, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert "Runs here: none yet; bao train makes runs." in says("players").splitlines()
    (tmp_path / "runs" / "empty").mkdir(parents=True)
    (tmp_path / "runs" / "mine").mkdir()
    (tmp_path / "runs" / "mine" / "last.safetensors").touch()
    lines = says("players").splitlines()
    assert "Runs here: runs/mine." in lines
    assert max(map(len, lines)) <= 80
    assert {line.split()[0] for line in lines if line.strip()} >= set(PLAYERS)
    assert any(line.split()[:2] == ["alphabeta:6", "1622"] for line in lines)
    head, *rows = lines[lines.index("") + 1 : lines.index("", 2)]
    elo, meaning = head.index("Elo"), head.index("what it does")
    for row in rows:  # in columns
        assert row[elo - 1 : elo + 3].strip() == row[elo - 2 : meaning].strip().rpartition(" ")[2]
        assert row[meaning - 1] == " " != row[meaning]


# --- what a player is and can -------------------------------------------------------------------


def test_a_player_of_another_package_plays_in_every_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, says: Says
) -> None:
    code = """
from bao_env import GreedyAgent
def load(name, *, ruleset, **_):
    if name != "fullest:3":
        raise ValueError(f"unknown player {name!r}: expected fullest:3")
    return GreedyAgent(ruleset)
"""
    (tmp_path / "fullest_package.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    group = "bao_env.players"
    entries = [
        EntryPoint("agents", "bao_agents.players.registry:load_ours", group),
        EntryPoint("fullest", "fullest_package:load", group),
    ]
    monkeypatch.setattr("bao_env.player_packages.entry_points", lambda group: entries)
    board, fullest = Board(), bao_agents.load("fullest:3")
    assert fullest.choose(board) == bao_agents.load("greedy").choose(board)
    assert fingerprint("fullest:3", fullest, RULESETS["zanzibar"]) is None  # it may change
    assert "fullest:3" in says("match random fullest:3 --pairs 2 --balance 9 --threads 1")
    assert parse_players(["other=fullest:3"]) == {"other": "fullest:3"}
    with pytest.raises(
        ValueError, match="unknown player 'fullest:3'"
    ):  # ladders and the board refuse it
        parse("fullest:3", checkpoints={})
    with pytest.raises(ValueError, match=r"^unknown player 'fullst': expected fullest:3"):
        bao_agents.load("fullst")
    with pytest.raises(ValueError, match=r"unknown player 'fullst'.*; unknown player 'fullst'"):
        get_agent("fullst")


def test_a_fingerprint_is_of_what_decides() -> None:
    """A guided player's fingerprint is its guide's, which changes whenever the guide is trained
    again."""
    rules = RULESETS["kibao"]
    marks = {
        spec: fingerprint(spec, bao_agents.load(spec, ruleset=rules), rules)
        for spec in ("greedy", "alphabeta:1", "guided:1", "guided:kibao:1", "kibao")
    }
    guide = hashlib.sha256((GUIDES / "kibao.safetensors").read_bytes()).hexdigest()[:16]
    assert marks["greedy"] == marks["alphabeta:1"] == "" and marks["guided:1"] == guide
    assert marks["guided:kibao:1"] == marks["kibao"] != guide


def test_an_error_names_the_module_that_was_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A user's file with the name of one of Python's modules is not imported."""
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path)])  # as --path does
    file = tmp_path / "calendar.py"
    file.write_text("def player(ruleset, seed): ...\n")
    with pytest.raises(ValueError) as error:
        bao_agents.load("calendar:player")
    assert f"imported from {calendar.__file__}, not from {file}: rename" in str(error.value)
    (tmp_path / "broken_bot.py").write_text("None.seeds")
    with pytest.raises(ValueError, match=r"cannot be imported: AttributeError.*; expected MODULE:"):
        bao_agents.load("broken_bot:player")
    (tmp_path / "script_bot.py").write_text("raise SystemExit")
    with pytest.raises(ValueError, match=r"cannot be imported: SystemExit.* below if __name__ =="):
        bao_agents.load("script_bot:player")
    (tmp_path / "exiting_bot.py").write_text("def player(ruleset, seed): raise SystemExit(3)")
    with pytest.raises(ValueError, match=r"cannot be loaded: SystemExit: 3$"):
        bao_agents.load("exiting_bot:player")
    (tmp_path / "empty_bot.py").touch()
    with pytest.raises(ValueError, match=r"from .*empty_bot\.py: expected it to define that name"):
        bao_agents.load("empty_bot:player")


def test_a_module_in_two_folders_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The older version would play under the name of the newer one."""
    folders = [tmp_path / name for name in ("old", "new")]
    code = "from bao_env import GreedyAgent\n\ndef player(ruleset, seed): return GreedyAgent()\n"
    monkeypatch.setattr(sys, "path", [*sys.path, *map(str, folders)])
    for folder in folders:
        folder.mkdir()
    (folders[0] / "double_bot.py").write_text(code)
    bao_agents.load("double_bot:player")
    (folders[1] / "double_bot.py").write_text(code)
    message = f"imported from {folders[0]}.*, not from {folders[1]}.*: rename that file"
    with pytest.raises(ValueError, match=message):
        bao_agents.load("double_bot:player")
    for name in ("./empty_bot.py:player", str(tmp_path / "empty_bot.py")):
        with pytest.raises(ValueError, match="name your own code MODULE:FUNCTION, with --path"):
            bao_agents.load(name)


SILENT = """
import sys
for line in sys.stdin:
    if line.startswith("isready"): print("ready", flush=True)
"""


@pytest.mark.parametrize(
    "name", [*SEARCHES, "greedy", "alphabeta:1", "pipe", "any_rules:player", "no_rules:player"]
)
def test_a_player_refuses_a_board_with_other_rules(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """This holds even for users' code that does not say which rules it was made for. Only random
    plays by any rules."""
    (tmp_path / "silent.py").write_text(SILENT)
    (tmp_path / "any_rules.py").write_text(
        "from bao_env import RandomAgent\ndef player(ruleset, seed): return RandomAgent(seed).act\n"
    )
    (tmp_path / "no_rules.py").write_text(
        "from bao_env import GreedyAgent\ndef player(ruleset, seed): return GreedyAgent()\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    if name == "pipe":
        name = f"pipe:{sys.executable} {tmp_path / 'silent.py'}"
    player = bao_agents.load(name)
    for ask in (player.choose, player.analyse):
        with pytest.raises(ValueError, match="by the rules of 'zanzibar', not 'dutch'"):
            ask(Board("dutch"))
    with pytest.raises(ValueError, match="by the rules of 'zanzibar', not 'dutch'"):
        play_match(bao_agents.load("random"), player, ruleset="dutch", pairs=1)
    assert bao_agents.load("random").choose(Board("dutch")) in Board("dutch").legal_actions


def test_a_player_knows_its_rules() -> None:
    """Networks and guides recognise their rules by the switches, whatever the rule set is
    called."""
    kibao = RULESETS["kibao"]
    switched = kibao.replace(name="mine", sow_limit=500)
    for spec in ("random", "alphabeta:2", "guided:2", "kibao"):
        assert parse(spec).plays(kibao) and parse(spec).plays(kibao.replace(name="mine"))
        assert parse(spec).plays(RULESETS["dutch"]) == ("kibao" not in spec)
        assert parse(spec).plays(switched) == (spec in ("random", "alphabeta:2"))
