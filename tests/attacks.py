"""Attacks on everything that takes something from outside, for the standing watch (tests/soak.py).

An attack draws what it does from one generator, so its seed repeats it. It fails by any exception,
by a crash of its process, or by not ending in time.
"""

from __future__ import annotations

import contextlib
import faulthandler
import json
import os
import random
import re
import resource
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from bao_env.board import Board
from bao_env.bots import Agent, GreedyAgent, RandomAgent, check_actions
from bao_env.engine.batch import Engine, random_actions, random_states, unpack_masks
from bao_env.engine.layout import NORTH, SOUTH
from bao_env.engine.position import NO_WINNER, unpack
from bao_env.engine.ruleset import RULESETS, Ruleset
from bao_env.game import packed
from bao_env.notation import (
    format_position,
    move_to_action,
    parse_position,
    parse_transcripts,
    read_move,
    replay,
)
from bao_env.rule_files import load_ruleset
from tests import reference
from tests.make_golden import DATA
from tests.positions import random_position

ROOT: Final = Path(__file__).parent.parent
SECONDS: Final = 5.0
"""How long one hostile input may take."""
GIB: Final = 1 << 30

Run = Callable[[random.Random, Path], None]
"""An attack: takes its generator, and an empty folder for its files."""


class Attack(NamedTuple):
    """One way to try to break something."""

    run: Run
    seconds: float
    """After this time it hangs."""


# --- limits -------------------------------------------------------------------------------------


@contextlib.contextmanager
def within(seconds: float) -> Iterator[None]:
    """End this process, with a traceback, if the block takes longer; even in compiled code."""
    faulthandler.dump_traceback_later(seconds, exit=True)
    try:
        yield
    finally:
        faulthandler.cancel_dump_traceback_later()


def limit_memory(more: int) -> None:
    """Let this process take at most so many bytes more than it has now."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + more
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def wait_until(what: Callable[[], bool], seconds: float, message: str) -> None:
    """Wait until ``what()`` is true; AssertionError with the message after so many seconds."""
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, message
        time.sleep(0.05)


# --- killed programs ----------------------------------------------------------------------------

KINDS_OF_DEATH: Final = (signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGINT)


def start(*words: str) -> subprocess.Popen[bytes]:
    """A program of the project, in a process of its own; its messages are the attack's."""
    return subprocess.Popen(
        [sys.executable, "-m", *words],
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        env=os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
    )


def finish(*words: str) -> float:
    """Run a program to its end, which must be a good one; returns the seconds it took."""
    begun = time.monotonic()
    status = start(*words).wait()
    assert status == 0, f"{words[0]} ended with status {status}"
    return time.monotonic() - begun


def children(process: int) -> list[int]:
    """The processes that it started and that still run."""
    found = subprocess.run(["pgrep", "-P", str(process)], capture_output=True, text=True)
    return [int(word) for word in found.stdout.split()]


def ended(processes: list[int]) -> bool:
    """Whether none of them runs; one that has ended may stay in the table for a while."""
    for process in processes:
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
            if state != "Z":
                return False
    return True


def written(file: Path) -> int:
    """When a file was last written; 0 if it is not there."""
    try:
        return file.stat().st_mtime_ns
    except FileNotFoundError:
        return 0


def kill_some(rng: random.Random, seconds: float, saved: Path, *words: str) -> None:
    """Start a program a few times, and kill it each time at a random moment.

    Args:
        rng: draws the moments: any, or soon after the program has saved something.
        seconds: what the program takes if it is left alone.
        saved: the file that it writes again and again.
        words: its module and arguments.
    """
    for _ in range(rng.randint(2, 4)):
        before = written(saved)
        process = start(*words)
        wait = rng.uniform(0.1, 1.0) * seconds
        if rng.random() < 0.7:
            while process.poll() is None and written(saved) == before:
                time.sleep(0.002)
            wait = rng.expovariate(5.0)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(wait)
        family = children(process.pid)
        process.send_signal(rng.choice(KINDS_OF_DEATH))
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            raise AssertionError("it did not end within a minute of a signal") from None
        wait_until(partial(ended, family), 15, f"{words[0]} left a process behind")


METHODS: Final = {
    "ppo": ("ppo.opponent_pool_every=2", "ppo.opponent_pool_share=0.5", "minibatch=256"),
    "alphazero": ("alphazero.simulations=4", "alphazero.buffer=4000", "minibatch=64"),
}


def training(rng: random.Random, folder: Path) -> None:
    """A run that is killed and resumed ends bit for bit as one that is left alone."""
    from safetensors.numpy import load_file

    method = rng.choice(list(METHODS))
    settings = [f"method={method}", f"seed={rng.randrange(1000)}", "hidden=[16]", "envs=32"]
    settings += ["rollout=16", "steps=8192", "max_plies=150", "checkpoint_every=0"]
    settings += ["evaluate_every=2000", "evaluate_pairs=2", *METHODS[method]]
    words = [word for setting in settings for word in ("--set", setting)]
    alone = finish("training.train", "--runs", str(folder), "--run", "alone", *words)
    killed = ("training.train", "--runs", str(folder), "--run", "killed", "--resume", *words)
    kill_some(rng, alone, folder / "killed" / "last.safetensors", *killed)
    finish(*killed)
    one, other = (load_file(folder / name / "final.safetensors") for name in ("alone", "killed"))
    assert one.keys() == other.keys()
    for name in one:
        np.testing.assert_array_equal(one[name], other[name], err_msg=f"{method}: {name}")


def tournament(rng: random.Random, folder: Path) -> None:
    """A tournament that is killed and continued has the results of one that is left alone."""
    players = ["random", "greedy", "alphabeta:2", f"mcts:{rng.choice((2, 8, 50))}"]
    options = ["--pairs", "120", "--seed", str(rng.randrange(1000)), "--processes", "2"]
    words = ["training.tournament", *rng.sample(players, 3), *options, "--out"]

    def results(name: str) -> dict[tuple[str, str, int], Any]:
        lines = (folder / name / "results.jsonl").read_text().splitlines()
        whole = [json.loads(line) for line in lines if line.startswith("{") and line[-1] == "}"]
        return {(w["first"], w["second"], w["unit"]): (w["points"], w["plies"]) for w in whole}

    alone = finish(*words, str(folder / "alone"))
    saved = folder / "killed" / "results.jsonl"
    kill_some(rng, alone, saved, *words, str(folder / "killed"))
    finish(*words, str(folder / "killed"))
    assert results("alone") == results("killed")
    tables = [json.loads((folder / n / "table.json").read_text()) for n in ("alone", "killed")]
    assert tables[0]["pairings"] == tables[1]["pairings"]


# --- texts --------------------------------------------------------------------------------------

ALPHABET: Final = "0123456789,/ -+*<>:;=[]{}\"'.ABabLRSN\n\t\r\0\ufeff\u0664\u00b2\u2013\U0001f330"


def mutated(rng: random.Random, text: str, other: str) -> str:
    """A text after some random cuts, repeats and insertions, also of pieces of another one."""
    for _ in range(rng.choice((1, 1, 1, 2, 3, 10))):
        i = rng.randrange(len(text) + 1)
        j = min(len(text), i + rng.choice((0, 1, 1, 2, 5, 40)))
        k = rng.randrange(len(other) + 1)
        piece = rng.choice(
            (
                "",
                text[i:j] * 2,
                other[k : k + 20],
                rng.choice(ALPHABET),
                "".join(rng.choices(ALPHABET, k=5)),
                rng.choice("0-9[{/ ") * rng.choice((3, 30, 5000)),
            )
        )
        text = text[:i] + piece + text[j:]
    return text


def _read_move(board: Board, text: str) -> None:
    with contextlib.suppress(ValueError):
        move_to_action(text)
    read_move(text, board.words, board.ruleset)


def _read_position(ruleset: Ruleset, text: str) -> None:
    board = Board.from_text(text, ruleset)
    assert Board.from_text(board.text(), ruleset) == board
    assert board.legal_moves or board.outcome() is not None


def _read_transcript(ruleset: Ruleset, text: str) -> None:
    for game in parse_transcripts(text):
        replay(game)
        replay(game, ruleset, strict=False)


def _read_rules(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
    ruleset = load_ruleset(path)
    assert Ruleset.from_dict(json.loads(json.dumps(ruleset.to_dict()))) == ruleset
    random_batch(Engine(ruleset), 8, 30, 1)


def toml(ruleset: Ruleset) -> str:
    """A rule set as a file."""
    return "".join(f"{key} = {json.dumps(value)}\n" for key, value in ruleset.to_dict().items())


def texts(rng: random.Random, folder: Path) -> None:
    """Every text is read, or refused with a ValueError, in a short time."""
    games = [path.read_text(encoding="utf-8") for path in sorted(DATA.glob("golden/*.txt"))]
    games += [path.read_text(encoding="utf-8") for path in sorted(DATA.glob("games/*.txt"))]
    name = rng.choice(list(RULESETS))
    ruleset = RULESETS[name]
    random_batch(Engine(ruleset), 8, 10, 1)  # compiles
    board = Board(ruleset)
    _read_position(ruleset, board.text())
    limit_memory(2 * GIB)
    for _ in range(1500):
        kind = rng.choice(("position", "move", "transcript", "rules"))
        position = random_position(rng, ruleset)
        spelled = [board.move_text(m, s) for m in board.legal_moves for s in ("donkers", "kibao")]
        source, read = {
            "position": (position, partial(_read_position, ruleset)),
            "move": (
                rng.choice([*spelled, *board.legal_moves]),
                partial(_read_move, board),
            ),
            "transcript": (rng.choice(games), partial(_read_transcript, ruleset)),
            "rules": (toml(ruleset), partial(_read_rules, folder / "rules.toml")),
        }[kind]
        text = mutated(rng, source, rng.choice((position, toml(ruleset), rng.choice(games))))
        try:
            with within(SECONDS), contextlib.suppress(ValueError):
                read(text)
        except Exception as error:
            raise AssertionError(f"{kind} {text[:2000]!r}") from error
        if rng.random() < 0.05:
            with contextlib.suppress(ValueError):
                board = Board.from_text(position, ruleset)
            if not board.legal_moves:
                board = Board(ruleset)


# --- checkpoints --------------------------------------------------------------------------------

HOSTILE: Final[tuple[Any, ...]] = (
    *(None, True, -1, 0, 2**63, 2**200, 1e308, float("nan"), "", "x" * 10_000, [], {}, [[]]),
    *([2**31], [65536] * 64, [10**9, 10**9], {"a": 1}, "mlp", "moves", "zanzibar", [1] * 8, [True]),
)


def _replace_somewhere(rng: random.Random, value: Any) -> Any:
    """Plain values with one of them replaced by a hostile one, or left out."""
    if isinstance(value, dict) and value and rng.random() < 0.9:
        key = rng.choice(list(value))
        rest = {k: v for k, v in value.items() if k != key}
        return rest if rng.random() < 0.1 else value | {key: _replace_somewhere(rng, value[key])}
    if isinstance(value, list) and value and rng.random() < 0.7:
        i = rng.randrange(len(value))
        return [*value[:i], _replace_somewhere(rng, value[i]), *value[i + 1 :]]
    return rng.choice(HOSTILE)


def damaged(rng: random.Random, data: bytes) -> bytes:
    """A checkpoint cut or lengthened, or with other bytes, weights, or values in its head."""
    ways = {"flip": 2, "flip head": 1, "cut": 1, "longer": 1, "length": 1, "head": 2}
    ways |= {"numbers": 4, "note": 4}
    way = rng.choices(list(ways), list(ways.values()))[0]
    length = struct.unpack("<Q", data[:8])[0]
    if way == "numbers":
        numbers = np.frombuffer(data[8 + length :], "<f4").copy()
        for _ in range(rng.choice((1, 3, 100))):
            numbers[rng.randrange(len(numbers))] = rng.choice((np.nan, np.inf, 3e38, -3e38, 1e-45))
        return data[: 8 + length] + numbers.tobytes()
    if way in ("flip", "flip head"):
        changed = bytearray(data)
        for _ in range(rng.choice((1, 3, 100))):
            changed[rng.randrange(len(data) if way == "flip" else 8 + length)] = rng.randrange(256)
        return bytes(changed)
    if way == "cut":
        return data[: rng.choice((0, 4, 8, 8 + length, rng.randrange(len(data))))]
    if way == "longer":
        return data + rng.randbytes(rng.choice((1, 1000)))
    if way == "length":
        return struct.pack("<Q", rng.choice((0, 1, length - 1, length + 1, 2**63))) + data[8:]
    head = json.loads(data[8 : 8 + length])
    if way == "head":
        head = _replace_somewhere(rng, head)
    else:
        note = json.loads(head["__metadata__"]["bao_env"])
        head["__metadata__"]["bao_env"] = json.dumps(_replace_somewhere(rng, note))
    text = json.dumps(head).encode()
    return struct.pack("<Q", len(text)) + text + data[8 + length :]


def checkpoints(rng: random.Random, folder: Path) -> None:
    """A damaged checkpoint is refused, or its network plays with finite numbers."""
    import torch

    from agents.nets import checkpoint
    from agents.nets.network import KINDS, NetworkConfig, PolicyNetwork
    from agents.nets.policy import PolicyAgent

    torch.set_num_threads(1)

    def play(path: Path) -> None:
        loaded = checkpoint.load(path)
        positions, masks = random_batch(Engine(loaded.ruleset), 32, 25, 2)
        agent = PolicyAgent(loaded.network, loaded.ruleset)
        check_actions(agent.act(positions, masks), masks, "the network")
        said = agent.evaluate(positions, masks)
        assert np.isfinite(said.logits).all() and np.isfinite(said.values).all()

    files = []
    for kind in KINDS:
        config = NetworkConfig(kind, (rng.choice((1, 8, 32)),) * rng.randint(1, 3))
        saved = checkpoint.Checkpoint(
            PolicyNetwork(config),
            RULESETS[rng.choice(list(RULESETS))],
            {"steps": 7, "config": {"seed": 1}},
            {"adam": np.arange(5.0)},
        )
        checkpoint.save(folder / kind, saved)
        play(folder / kind)  # compiles
        files.append((folder / kind).read_bytes())
    limit_memory(2 * GIB)
    path = folder / "damaged.safetensors"
    for _ in range(300):
        data = damaged(rng, rng.choice(files))
        path.write_bytes(data)
        try:
            with within(SECONDS), contextlib.suppress(checkpoint.CheckpointError):
                play(path)
        except Exception as error:
            length = struct.unpack("<Q", data[:8])[0]
            raise AssertionError(f"the head is {data[8 : 8 + length][:3000]!r}") from error


# --- arrays -------------------------------------------------------------------------------------


def random_batch(
    engine: Engine, size: int, plies: int, seed: int
) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64]]:
    """Positions of random games after so many plies, and their legal actions."""
    opening, mask = engine.opening()
    positions, masks = np.tile(opening, (size, 1)), np.full(size, mask)
    winners = np.full(size, NO_WINNER, np.int8)
    engine.play_random(positions, masks, winners, random_states(size, seed), plies)
    return positions, masks


def odd(rng: random.Random, array: npt.NDArray[Any]) -> Any:
    """Something like an array, but not quite."""
    wide = np.zeros((array.shape[0], *array.shape[1:], 2), array.dtype)
    wide[..., 0] = array
    bytes_ = np.zeros(array.nbytes + 1, np.uint8)
    misaligned = bytes_[1:].view(array.dtype).reshape(array.shape)
    misaligned[...] = array
    read_only = array.copy()
    read_only.flags.writeable = False
    others = [np.int8, np.int32, np.int64, np.float64, np.bool_, np.complex128, np.uint8]
    return rng.choice(
        [
            array[: len(array) // 2],
            array[:0],
            np.concatenate([array, array]),
            array[..., None],
            array.reshape(-1),
            array[::-1],
            wide[..., 0],
            np.asfortranarray(array),
            array.T,
            read_only,
            misaligned,
            array.astype(array.dtype.newbyteorder()),
            array.astype(rng.choice(others)),
            array.view(np.uint8),
            array.astype(object),
            array[0],
            array.tolist(),
            None,
            7,
            "array",
            np.array(7, array.dtype),
            memoryview(array.data),
            np.ma.masked_array(array),
        ]
    )


def _players(ruleset: Ruleset) -> dict[str, Agent]:
    from agents.nets.network import NetworkConfig, PolicyNetwork
    from agents.nets.policy import PolicyAgent
    from agents.search.alphabeta import AlphaBetaAgent
    from agents.search.gumbel_agent import SearchAgent
    from agents.search.mcts import MctsAgent

    network = PolicyNetwork(NetworkConfig("moves", (8,)))
    return {
        "random": RandomAgent(1),
        "greedy": GreedyAgent(ruleset),
        "alphabeta": AlphaBetaAgent(ruleset, depth=2, threads=2),
        "mcts": MctsAgent(ruleset, simulations=4, threads=2),
        "network": PolicyAgent(network, ruleset),
        "search": SearchAgent(network, ruleset, 4, threads=2),
    }


def arrays(rng: random.Random, folder: Path) -> None:
    """Odd arrays, and several threads, are refused or served; nothing crashes."""
    ruleset = RULESETS[rng.choice(list(RULESETS))]
    size = rng.choice((1, 3, 64, 700))
    engines = [Engine(ruleset, threads) for threads in (1, 2, 3)]
    positions, masks = random_batch(engines[0], size, 20, rng.randrange(1000))
    players = _players(ruleset)
    for player in players.values():
        player.act(positions[:3], masks[:3])  # compiles

    def good() -> dict[str, npt.NDArray[Any]]:
        actions = np.zeros(size, np.int64)
        random_actions(masks, random_states(size, 1), actions)
        return {
            "positions": positions.copy(),
            "masks": masks.copy(),
            "winners": np.full(size, NO_WINNER, np.int8),
            "actions": actions,
            "rng": random_states(size, 2),
            "out": np.zeros((size, 64), np.int8),
        }

    def calls(engine: Engine) -> dict[str, tuple[Callable[..., Any], tuple[str, ...]]]:
        of_engine: dict[str, tuple[Callable[..., Any], tuple[str, ...]]] = {
            "legal_masks": (engine.legal_masks, ("positions", "masks", "winners")),
            "step": (engine.step, ("positions", "actions", "masks", "winners")),
            "play_random": (
                partial(engine.play_random, plies=3),
                ("positions", "masks", "winners", "rng"),
            ),
            "random_actions": (random_actions, ("masks", "rng", "actions")),
            "unpack_masks": (unpack_masks, ("masks", "out")),
        }
        return of_engine | {
            name: (player.act, ("positions", "masks")) for name, player in players.items()
        }

    def one(rng: random.Random, oddness: float) -> None:
        name, (call, names) = rng.choice(list(calls(rng.choice(engines)).items()))
        given: list[Any] = [good()[key] for key in names]
        for i in range(len(given)):
            if rng.random() < oddness:
                given[i] = odd(rng, given[i])
        print(name, *(f"{getattr(g, 'dtype', g)}{np.shape(g)}" for g in given), flush=True)
        with contextlib.suppress(TypeError, ValueError, RuntimeError):
            call(*given)

    for _ in range(600):
        with within(60):
            one(rng, 0.5)
    # Threads share engines and players, for which these are not made: refused or not, no crash.
    with within(120), ThreadPoolExecutor(4) as pool:
        list(pool.map(one, [random.Random(rng.random()) for _ in range(200)], [0.1] * 200))


# --- rules --------------------------------------------------------------------------------------


def engine_moves(engine: Engine, text: str) -> dict[int, str]:
    """What :func:`tests.reference.legal_moves` finds, by the engine."""
    words = packed(parse_position(text, engine.ruleset))
    masks, winners = np.zeros(1, np.uint64), np.zeros(1, np.int8)
    engine.legal_masks(words[None], masks, winners)
    legal = [action for action in range(64) if int(masks[0]) >> action & 1]
    assert bool(legal) == (winners[0] == NO_WINNER)
    if not legal:
        return {}
    positions, masks = np.tile(words, (len(legal), 1)), np.full(len(legal), masks[0])
    winners = np.full(len(legal), NO_WINNER, np.int8)
    engine.step(positions, np.array(legal), masks, winners)
    return {
        action: f"{'SN'[winners[i]]} wins"
        if winners[i] != NO_WINNER
        else format_position(unpack(positions[i]))
        for i, action in enumerate(legal)
    }


def rules(rng: random.Random, folder: Path) -> None:
    """Random games and positions: the engine and the literal reference never differ."""
    for name in rng.sample(list(RULESETS), 2):
        ruleset = RULESETS[name]
        engine = Engine(ruleset, rng.choice((1, 2)))
        text = reference.opening(ruleset)
        for _ in range(400):
            if rng.random() < 0.3:
                other = random_position(rng, ruleset)
                found = engine_moves(engine, other)
                assert found == reference.legal_moves(other, ruleset), (name, other)
            moves = engine_moves(engine, text)
            assert moves == reference.legal_moves(text, ruleset), (name, text)
            text = rng.choice(list(moves.values()))
            if text in reference.WINS.values():
                seat = rng.choice((SOUTH, NORTH)) if ruleset.first_player == "lot" else SOUTH
                text = reference.opening(ruleset, "SN"[seat])


# --- the board ----------------------------------------------------------------------------------

POSTS: Final = ("play", "goto", "seats", "events", "choice", "why", "transcript", "hints", "bot")
PLAYERS: Final = ("human", "random", "greedy", "alphabeta:3", "alphabeta:9", "mcts:50", "zanzibar")
MAX_SERVER_BYTES: Final = 3 * GIB
ANSWER_SECONDS: Final = 3.0


class Client:
    """A client of the board that knows no manners.

    Args:
        rng: draws what it does.
        port: of the server on this machine.
    """

    def __init__(self, rng: random.Random, port: int) -> None:
        self._rng = rng
        self._port = port
        self._games: list[str] = []
        self._idle: list[socket.socket] = []

    def act(self) -> None:
        """Do one thing."""
        rng = self._rng
        with contextlib.suppress(OSError):  # it may be cut off; only what it is told counts
            way = rng.random()
            if way < 0.6:
                self.answer(self._request(*self._call()))
            elif way < 0.75:  # a request of which every byte may be wrong
                text = self._request(*self._call()).decode("latin-1")
                changed = mutated(rng, text, "GET /static/../../x HTTP/1.1\r\nTransfer-Encoding: ")
                self.answer(changed.encode("latin-1", "replace"), 1.0)
            elif way < 0.9:  # asks, and is gone before the answer
                connection = self._connect()
                data = self._request(*self._call())
                connection.sendall(data[: rng.choice((len(data), rng.randrange(len(data))))])
                linger = struct.pack("ii", 1, 0)  # a reset instead of an orderly end
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
                connection.close()
            else:  # says little or nothing, and stays
                connection = self._connect()
                connection.sendall(rng.choice((b"", b"GET", b"POST /api/games HTTP/1.1\r\n")))
                self._idle.append(connection)
                if len(self._idle) > 30:
                    self._idle.pop(0).close()

    def answer(self, data: bytes, seconds: float = 30.0) -> bytes:
        """Send bytes; returns what the server says, as far as it comes in time.

        Raises:
            OSError: the server cut the connection.
            AssertionError: the server says that it made a mistake.
        """
        said = b""
        with self._connect() as connection:
            connection.settimeout(seconds)
            connection.sendall(data)
            with contextlib.suppress(TimeoutError):
                while len(said) < 1 << 20 and (more := connection.recv(1 << 16)):
                    said += more
        assert not re.match(rb"HTTP/1\.\d 500", said), (data[:3000], said[:1000])
        found = re.search(rb'"id": ?"([\w-]+)"', said)
        if found:
            kind = "watches" if b"/watches" in data[:40] else "games"
            self._games = [*self._games[-20:], f"/api/{kind}/{found[1].decode()}"]
        return said

    def is_answered(self) -> bool:
        """Whether the server answers a plain request."""
        try:
            return b" 200 " in self.answer(self._request("/api/setup", {}))[:20]
        except OSError:
            return False

    def _connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self._port), timeout=10.0)

    def _call(self) -> tuple[str, dict[str, Any]]:
        """A path and values for it, some of them wrong."""
        rng = self._rng
        data: dict[str, Any] = {
            "ply": rng.choice((0, 0, 1, 2, 3, 10_000)),
            "action": rng.randrange(64),
            "pit": rng.randrange(16),
            "direction": rng.randrange(2),
            "seats": rng.choices(PLAYERS, k=2),
            "players": rng.choices(PLAYERS, k=2),
            "boards": rng.choice((1, 2, 8)),
            "ruleset": rng.choice(list(RULESETS)),
        }
        if rng.random() < 0.2:
            golden = sorted(DATA.glob("golden/*.txt"))
            data["transcript"] = mutated(rng, rng.choice(golden).read_text(), "[{")
        if rng.random() < 0.2:
            position = random_position(rng, RULESETS[data["ruleset"]])
            data["position"] = rng.choice((position, mutated(rng, position, "[{")))
        if rng.random() < 0.3:
            data = _replace_somewhere(rng, data)
        new = rng.choice(("/api/games", "/api/watches", "/api/example", "/api/setup", "/"))
        if not self._games or rng.random() < 0.3:
            return new, data
        game = rng.choice(self._games)
        return f"{game}/{rng.choice(('step',) if 'watches' in game else POSTS)}", data

    def _request(self, path: str, data: Any) -> bytes:
        get = path in ("/", "/api/setup")
        body = b"" if get else json.dumps(data).encode()
        head = [
            f"{'GET' if get else 'POST'} {path} HTTP/1.1",
            f"Host: 127.0.0.1:{self._port}",
            "Content-Type: application/json",
            f"Content-Length: {len(body)}",
            "Connection: close",
        ]
        return ("\r\n".join(head) + "\r\n\r\n").encode() + body


def _memory(process: int) -> int:
    """Bytes that a process holds in memory."""
    pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
    return pages * resource.getpagesize()


def board(rng: random.Random, folder: Path) -> None:
    """The server outlives bad clients: it soon answers again, makes no mistake, stays small."""
    command = [sys.executable, "-u", "-m", "agents.play", "--no-browser", "--port", "0"]
    server = subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, env=os.environ | {"PYTHONPATH": str(ROOT)}
    )
    assert server.stdout is not None
    found = re.search(rb":(\d+)/", server.stdout.readline())
    assert found is not None
    port = int(found[1])
    seeds = [rng.randrange(1 << 30) for _ in range(6)]
    errors: list[BaseException] = []

    def misbehave(seed: int) -> None:
        client = Client(random.Random(seed), port)
        end = time.monotonic() + 20.0
        try:
            while time.monotonic() < end:
                client.act()
        except BaseException as error:
            errors.append(error)

    try:
        friend = Client(random.Random(0), port)
        wait_until(friend.is_answered, 60, "the board does not start")
        threads = [threading.Thread(target=misbehave, args=(seed,)) for seed in seeds]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for error in errors:
            raise error
        begun = time.monotonic()
        assert friend.is_answered()
        took = time.monotonic() - begun
        assert took < ANSWER_SECONDS, f"the board needed {took:.1f} s for an answer"
        assert server.poll() is None
        assert _memory(server.pid) < MAX_SERVER_BYTES, f"{_memory(server.pid)} bytes"
    finally:
        server.kill()
        server.wait()


# --- the table ----------------------------------------------------------------------------------

ATTACKS: Final[Mapping[str, Attack]] = {
    "training": Attack(training, 600.0),
    "tournament": Attack(tournament, 600.0),
    "texts": Attack(texts, 300.0),
    "checkpoints": Attack(checkpoints, 300.0),
    "arrays": Attack(arrays, 300.0),
    "rules": Attack(rules, 300.0),
    "board": Attack(board, 300.0),
}
"""Every attack, by name."""
