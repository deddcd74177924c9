"""Train a Bao policy by self-play with masked PPO.

    python -m training.train --config configs/quick.toml

Each update: every worker plays ``rollout`` actions in its games, against itself and in
part against past selves (:mod:`training.selfplay`); advantages are normalised over all
workers; then the network takes one Adam step a minibatch, on gradients that the workers
compute side by side and that are added up in a fixed order (:mod:`training.loss`).

``runs/NAME/`` keeps the configuration, the commit, metrics.csv, TensorBoard's log,
``last.safetensors`` (all that is needed to go on) and, at the end, ``final.safetensors``.
A run stopped at any moment goes on with ``--resume`` exactly as if it had never stopped.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from tqdm import tqdm

from agents import checkpoint, registry
from agents.arena import play_match
from agents.checkpoint import Arrays, Checkpoint, CheckpointError
from agents.network import PolicyNetwork
from agents.policy import PolicyAgent
from training.config import ConfigError, TrainConfig, config_from_dict, load_config
from training.loss import STATS
from training.memory import keep_freed_memory
from training.metrics import Metrics
from training.selfplay import Worker

COLUMNS = [
    "update",
    "steps",
    "seconds",
    "steps_per_second",
    "learning_rate",
    *STATS,
    "explained_variance",
    "gradient_norm",
    "plies_per_game",
    "score_against_pool",
    "score_against_random",
    "score_against_greedy",
]
OPPONENTS = ("random", "greedy")


class Trainer:
    """The state of a run: network, optimiser, pool of past selves, workers, counters."""

    def __init__(self, config: TrainConfig) -> None:
        keep_freed_memory()
        torch.set_num_threads(1)  # the workers are the threads
        self.config = config
        self.ruleset = config.get_ruleset()
        self.device = pick_device(config.device)
        seeds = np.random.SeedSequence(config.seed).spawn(config.workers + 2)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(int(seeds[0].generate_state(1)[0]))
            self.network = PolicyNetwork(config.network_config()).to(self.device)
        self.generator = np.random.Generator(np.random.PCG64(seeds[1]))
        self.workers = [Worker(config, self.network, seed) for seed in seeds[2:]]
        self.optimizer = torch.optim.Adam(
            self.network.parameters(), lr=config.learning_rate, eps=1e-5, fused=True
        )
        self.pool: list[dict[str, Tensor]] = []
        self._remember()
        self.update = 0
        self.steps = 0
        self.seconds = 0.0
        self._threads = ThreadPoolExecutor(
            config.workers, initializer=torch.set_num_threads, initargs=(1,)
        )

    @property
    def updates(self) -> int:
        """Updates in the whole run."""
        return math.ceil(self.config.steps / (self.config.envs * self.config.rollout))

    def each(self, method: str, *args: Any) -> list[Any]:
        """Call a method of all workers side by side; results in the workers' order."""
        return list(self._threads.map(lambda worker: getattr(worker, method)(*args), self.workers))

    def train_update(self) -> dict[str, float]:
        """One rollout and what is learnt from it; returns the row of metrics."""
        config, start = self.config, time.perf_counter()
        fall = 0.5 * (1.0 + math.cos(math.pi * self.update / max(1, self.updates)))
        rate = config.final_learning_rate + fall * (
            config.learning_rate - config.final_learning_rate
        )
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        entropy_weight = config.entropy_weight * rate / max(config.learning_rate, 1e-12)

        self.each("follow", self.network)
        self.each("choose_rival", self.pool)
        totals = self.each("collect")
        learnt = np.concatenate(self.each("learnt_advantages"))
        mean, deviation = float(learnt.mean()), float(learnt.std()) + 1e-8
        stats = np.zeros(len(STATS))
        rows, norm = 0, 0.0
        batches = config.envs * config.rollout // config.minibatch
        for _ in range(config.epochs):
            sizes = np.sum(self.each("deal", batches), axis=0)
            for batch in range(batches):
                size = int(sizes[batch])
                if not size:
                    continue
                results = self.each("gradient", batch, size, mean, deviation, entropy_weight)
                stats += np.sum(results, axis=0)
                rows += size
                norm += self._descend()
        self.update += 1
        self.steps += config.envs * config.rollout
        seconds = time.perf_counter() - start
        self.seconds += seconds
        if self.update % config.pool_every == 0:
            self._remember()

        row: dict[str, float] = {
            "update": self.update,
            "steps": self.steps,
            "seconds": self.seconds,
            "steps_per_second": config.envs * config.rollout / seconds,
            "learning_rate": rate,
            **dict(zip(STATS, (stats / max(1, rows)).tolist(), strict=True)),
            "explained_variance": self._explained_variance(),
            "gradient_norm": norm / (config.epochs * batches),
        }
        games = sum(total["games"] for total in totals)
        met = sum(total["pool_games"] for total in totals)
        if games:
            row["plies_per_game"] = sum(total["plies"] for total in totals) / games
        if met and self.workers[0].has_rival:
            row["score_against_pool"] = sum(total["pool_points"] for total in totals) / met
        return row

    def _descend(self) -> float:
        """Add up the workers' gradients and take one step; returns the gradient's norm."""
        for i, parameter in enumerate(self.network.parameters()):
            parameter.grad = torch.stack([w.gradients[i] for w in self.workers]).sum(dim=0)
        norm = torch.nn.utils.clip_grad_norm_(self.network.parameters(), self.config.max_gradient)
        self.optimizer.step()
        for worker in self.workers:
            worker.follow(self.network)
        return float(norm)

    def _explained_variance(self) -> float:
        """How much of the returns' variance the values explained in the last rollout."""
        errors = np.concatenate(self.each("learnt_advantages"))
        values = np.concatenate([w.rollout.values[w.rollout.learns] for w in self.workers])
        spread = float((errors + values).var())
        return 1.0 - float(errors.var()) / spread if spread > 0.0 else 0.0

    def _remember(self) -> None:
        """Add the network to the pool of past selves; the untrained first one stays in it."""
        past = {name: t.detach().clone() for name, t in self.network.state_dict().items()}
        if len(self.pool) < self.config.pool_size:
            self.pool.append(past)
        else:
            self.pool[int(self.generator.integers(1, len(self.pool)))] = past

    def evaluate(self) -> dict[str, float]:
        """Scores of the bare policy against the baseline bots, in paired games."""
        player = PolicyAgent(self._cpu_network(), self.ruleset)
        scores = {}
        for name in OPPONENTS:
            match = play_match(
                player,
                registry.load(name, ruleset=self.ruleset, seed=1),
                ruleset=self.ruleset,
                pairs=self.config.evaluate_pairs,
                seed=12345,
            )
            scores[f"score_against_{name}"] = match.score.rate
        return scores

    def _cpu_network(self) -> PolicyNetwork:
        network = PolicyNetwork(self.config.network_config())
        network.load_state_dict(self.network.state_dict())
        return network

    def _info(self) -> dict[str, Any]:
        return {"config": self.config.to_dict(), "steps": self.steps, "seconds": self.seconds}

    def save_policy(self, path: Path) -> None:
        """Write the network alone."""
        checkpoint.save(path, Checkpoint(self.network, self.ruleset, self._info()))

    def save(self, path: Path) -> None:
        """Write everything the run needs to go on exactly."""
        arrays: Arrays = {}
        generators = []
        for i, worker in enumerate(self.workers):
            state, generator = worker.state(f"worker.{i}.")
            arrays |= state
            generators.append(generator)
        for i, past in enumerate(self.pool):
            arrays |= {f"pool.{i}.{name}": t.cpu().numpy() for name, t in past.items()}
        for i, state in self.optimizer.state_dict()["state"].items():
            arrays |= {f"adam.{i}.{name}": t.cpu().numpy() for name, t in state.items()}
        info = self._info() | {
            "update": self.update,
            "pool": len(self.pool),
            "generator": self.generator.bit_generator.state,
            "workers": generators,
        }
        checkpoint.save(path, Checkpoint(self.network, self.ruleset, info, arrays))

    def restore(self, saved: Checkpoint) -> None:
        """Take over what :meth:`save` wrote.

        Raises:
            CheckpointError: it holds no run, or one of another shape.
        """
        try:
            self._restore(saved)
        except (KeyError, TypeError, ValueError, RuntimeError) as error:
            raise CheckpointError(f"the checkpoint does not hold this run: {error!r}") from error

    def _restore(self, saved: Checkpoint) -> None:
        info, arrays = saved.info, saved.arrays
        self.network.load_state_dict(saved.network.state_dict())
        self.generator.bit_generator.state = info["generator"]
        for i, (worker, generator) in enumerate(zip(self.workers, info["workers"], strict=True)):
            worker.restore(f"worker.{i}.", arrays, generator)
        names = list(self.network.state_dict())
        self.pool = [
            {name: torch.from_numpy(arrays[f"pool.{i}.{name}"].copy()) for name in names}
            for i in range(info["pool"])
        ]
        adam = self.optimizer.state_dict()
        if info["update"]:
            adam["state"] = {
                i: {
                    name: torch.from_numpy(arrays[f"adam.{i}.{name}"].copy())
                    for name in ("step", "exp_avg", "exp_avg_sq")
                }
                for i in range(len(names))
            }
        self.optimizer.load_state_dict(adam)
        self.update, self.steps = int(info["update"]), int(info["steps"])
        self.seconds = float(info["seconds"])


def pick_device(name: str) -> torch.device:
    """The device of a configuration: ``auto`` takes a GPU if there is one.

    Raises:
        ConfigError: ``cuda`` was asked for and there is none.
    """
    if name == "cuda" and not torch.cuda.is_available():
        raise ConfigError("device='cuda', but torch sees no CUDA device; use device='cpu'")
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    return torch.device(name)


def current_commit() -> str:
    """The checkout's commit, or ``unknown``."""
    git = ["git", "-C", str(Path(__file__).parent), "describe", "--always", "--dirty"]
    try:
        return subprocess.run(git, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def start_run(folder: Path, args: argparse.Namespace) -> tuple[Trainer, bool]:
    """A new run in ``folder``, or the one that is there; and whether it is resumed.

    Raises:
        ConfigError, CheckpointError: it can be neither started nor resumed.
    """
    last = folder / "last.safetensors"
    if last.exists():
        if not args.resume:
            raise ConfigError(
                f"{folder} holds a run already: go on with --resume, or choose another --run"
            )
        saved = checkpoint.load(last)
        if args.config or args.set:
            print("resuming with the run's own configuration", file=sys.stderr)
        trainer = Trainer(config_from_dict(saved.info["config"]))
        trainer.restore(saved)
        return trainer, True
    trainer = Trainer(load_config(args.config, args.set))
    folder.mkdir(parents=True, exist_ok=True)
    note = {
        "commit": current_commit(),
        "torch": torch.__version__,
        "config": trainer.config.to_dict(),
    }
    (folder / "run.json").write_text(json.dumps(note, indent=2) + "\n")
    return trainer, False


def run(trainer: Trainer, folder: Path) -> bool:
    """Train until the run is finished or interrupted; returns whether it is finished."""
    config = trainer.config
    stop = False

    def ask_to_stop(number: int, frame: object) -> None:
        nonlocal stop
        if stop:
            raise KeyboardInterrupt
        stop = True
        tqdm.write("stopping after this update; once more to stop at once", file=sys.stderr)

    handlers = {s: signal.signal(s, ask_to_stop) for s in (signal.SIGINT, signal.SIGTERM)}
    metrics = Metrics(folder, COLUMNS, trainer.update)
    bar = tqdm(
        total=config.steps, initial=trainer.steps, unit="step", unit_scale=True, desc=folder.name
    )
    saved = time.monotonic()
    shown: dict[str, str] = {}
    try:
        while trainer.steps < config.steps and not stop:
            before = trainer.steps
            row = trainer.train_update()
            every = config.evaluate_every
            finished = trainer.steps >= config.steps
            if finished or (every and trainer.steps // every > before // every):
                row |= trainer.evaluate()
                shown |= {name: f"{row[f'score_against_{name}']:.1%}" for name in OPPONENTS}
            metrics.write(row)
            bar.update(min(trainer.steps, config.steps) - min(before, config.steps))
            bar.set_postfix(shown | {"entropy": f"{row['entropy']:.2f}"})
            if time.monotonic() - saved >= config.checkpoint_every or finished:
                trainer.save(folder / "last.safetensors")
                saved = time.monotonic()
        if stop:
            trainer.save(folder / "last.safetensors")
    finally:
        bar.close()
        metrics.close()
        for number, handler in handlers.items():
            signal.signal(number, handler)
    if trainer.steps < config.steps:
        return False
    trainer.save_policy(folder / "final.safetensors")
    return True


def main(argv: list[str] | None = None) -> int:
    """Command line of ``python -m training.train``."""
    parser = argparse.ArgumentParser(
        prog="python -m training.train",
        description="Train a Bao policy by self-play (PPO).",
        epilog="settings and their defaults (training/config.py says what each does):\n"
        + "\n".join(f"  {key} = {value!r}" for key, value in TrainConfig().to_dict().items()),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--config", metavar="FILE", help="TOML file, e.g. configs/quick.toml")
    parser.add_argument(
        "--set", metavar="KEY=VALUE", action="append", default=[], help="override one setting"
    )
    parser.add_argument("--run", metavar="NAME", help="run's name; default: the config's file name")
    parser.add_argument("--runs", metavar="FOLDER", default="runs", help="default: runs")
    parser.add_argument("--resume", action="store_true", help="go on with the run if it exists")
    args = parser.parse_args(argv)
    name = args.run or (Path(args.config).stem if args.config else "default")
    folder = Path(args.runs) / name
    try:
        trainer, resumed = start_run(folder, args)
    except (ConfigError, CheckpointError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    if resumed:
        print(f"resumed {folder} at step {trainer.steps:,}", file=sys.stderr)
    if not run(trainer, folder):
        print(f"stopped; go on with --run {name} --resume", file=sys.stderr)
        return 128 + signal.SIGINT
    print(f"finished: {folder / 'final.safetensors'}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    sys.exit(main())
