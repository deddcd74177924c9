"""Compare RL libraries and our own trainers on Bao: rating against steps and against seconds.

    bao lab benchmark
    bao lab benchmark --learners ppo sb3 --observations replies moves --seeds 1

trains every learner on every observation that it reads, from several seeds, and writes a file for
each finished run. If it is stopped, the same command continues with the missing runs. In the end,
or at any time with ``--report``, it writes a table and a plot.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from concurrent.futures import Future, as_completed
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

from bao_agents.arena.scheduler import LocalPool
from bao_agents.progress import Progress
from bao_agents.resumable import parts_of

from bao_env import options
from bao_env.options import add_options, at_least
from bao_training.lab.benchmark import summary
from bao_training.lab.benchmark.learners import ENCODINGS, LEARNERS, OBSERVATIONS
from bao_training.lab.benchmark.runs import BenchmarkSettings, Name, Run, file_of, run


def command(parser: argparse.ArgumentParser) -> options.Run:
    """``bao lab benchmark``: train RL libraries and our own trainers, and rate them."""
    lines = [f"  {name:12} {learner.title}" for name, learner in LEARNERS.items()]
    parser.epilog = "learners:\n" + "\n".join(lines)
    defaults = BenchmarkSettings()
    parser.add_argument(
        "--learners",
        nargs="+",
        choices=LEARNERS,
        default=list(LEARNERS),
        metavar="NAME",
        help="some of those below (default: all that are installed)",
    )
    kinds = (*OBSERVATIONS, *ENCODINGS)
    parser.add_argument(
        "--observations",
        nargs="+",
        choices=kinds,
        default=list(kinds),
        metavar="KIND",
        help=f"some of {', '.join(OBSERVATIONS)}; and of what our own networks read: "
        f"{', '.join(ENCODINGS)} (default: all)",
    )
    parser.add_argument(
        "--seeds",
        nargs="+",
        type=at_least(0),
        default=[1, 2, 3],
        metavar="N",
        help="default: 1 2 3",
    )
    parser.add_argument(
        "--steps",
        type=at_least(1),
        default=defaults.steps,
        help="default: %(default)s; DQN a fifth",
    )
    parser.add_argument(
        "--precision",
        type=at_least(0.1, float),
        default=defaults.precision,
        metavar="ELO",
        help="precision of ratings on the way (default: %(default)g); the last one is a third more "
        "precise",
    )
    parser.add_argument(
        "--pairs",
        type=at_least(1),
        default=defaults.pairs,
        help="openings against each of three bots in the end (default: %(default)s)",
    )
    parser.add_argument(
        "--report", action="store_true", help="train nothing; write the table and the plot"
    )
    add_options(parser, threads=1, out=Path("runs/benchmark"))
    return _run


def chosen(args: argparse.Namespace) -> list[Name]:
    """Return the runs to do, seed by seed.

    Raises:
        ValueError: there are none.
    """
    learners = installed(args.learners)
    names = [
        Name(learner, observation, seed)
        for seed in dict.fromkeys(args.seeds)
        for learner in learners
        for observation in LEARNERS[learner].observations
        if observation in args.observations
    ]
    if not names:
        reads = [f"{name}: {', '.join(LEARNERS[name].observations)}" for name in args.learners]
        raise ValueError(
            "there is nothing to train: expected a learner that is installed and one of the "
            f"observations that it reads ({'; '.join(reads)})"
        )
    return names


def installed(learners: Iterable[str]) -> list[str]:
    """Return the learners whose library is installed; print which are skipped."""
    found = []
    for name in dict.fromkeys(learners):
        learner = LEARNERS[name]
        if learner.is_installed:
            found.append(name)
        else:
            print(
                f"{name} is skipped: {learner.distribution} is not installed; to train it, "
                f"pip install {learner.distribution}",
                file=sys.stderr,
            )
    return found


def train_all(names: list[Name], settings: BenchmarkSettings, folder: Path, jobs: int) -> int:
    """Do runs in processes of their own; print why runs fail, and return their number.

    Raises:
        KeyboardInterrupt, BrokenProcessPool: finished runs are kept.
    """
    failed = 0
    with (
        LocalPool(jobs) as pool,
        Progress(total=len(names), unit="run", desc="benchmark", position=0) as bar,
    ):
        futures: dict[Future[Run], Name] = {
            pool.submit(run, name, settings, folder, 1 + i % jobs): name
            for i, name in enumerate(names)
        }
        for future in as_completed(futures):
            try:
                last = future.result().points[-1]
                said = f"{last.elo:.0f} Elo, {last.steps:,} steps, {last.seconds:.0f} seconds"
            except BrokenProcessPool:
                raise
            except Exception as error:  # of a library: the other runs continue
                failed += 1
                said = f"failed: {type(error).__name__}: {error}"
            Progress.write(f"{futures[future]}: {said}", file=sys.stderr)
            bar.update()
    return failed


def _run(args: argparse.Namespace) -> int:
    settings = BenchmarkSettings(steps=args.steps, precision=args.precision, pairs=args.pairs)
    failed = 0
    try:
        if not args.report:
            names = chosen(args)
            with parts_of(args.out, settings.model_dump()):
                todo = [name for name in names if not file_of(args.out, name).exists()]
                failed = train_all(todo, settings, args.out, args.threads)
        print(summary.write(args.out))
    except KeyboardInterrupt:
        raise KeyboardInterrupt("the same command continues") from None
    return 1 if failed else 0
