"""Compare RL libraries and our own trainers on Bao: rating against steps and against seconds.

    python -m training.lab.benchmark
    python -m training.lab.benchmark --learners ppo sb3 --observations replies moves --seeds 1

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

from tqdm import tqdm

from agents.arena.executors import LocalPool
from agents.files import HeldError, hold
from training.lab.benchmark import summary
from training.lab.benchmark.learners import ENCODINGS, LEARNERS, OBSERVATIONS
from training.lab.benchmark.runs import BenchmarkSettings, Name, Run, run, unfinished


def arguments(argv: list[str] | None) -> argparse.Namespace:
    """Parse the command line."""
    lines = [f"  {name:12} {learner.title}" for name, learner in LEARNERS.items()]
    parser = argparse.ArgumentParser(
        prog="python -m training.lab.benchmark",
        description="Train RL libraries and our own trainers, and rate them on a ladder of "
        "bots. A stopped benchmark continues with the same command.",
        epilog="learners:\n" + "\n".join(lines),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
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
        "--seeds", nargs="+", type=int, default=[1, 2, 3], metavar="N", help="default: 1 2 3"
    )
    parser.add_argument(
        "--steps", type=int, default=defaults.steps, help=f"default: {defaults.steps}; DQN a fifth"
    )
    parser.add_argument(
        "--precision",
        type=float,
        default=defaults.precision,
        metavar="ELO",
        help="precision of ratings on the way (default %(default)g); the last one is a third more "
        "precise",
    )
    parser.add_argument(
        "--pairs",
        type=int,
        default=defaults.pairs,
        help="openings against each of three bots in the end (default %(default)s)",
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("runs/benchmark"),
        metavar="DIR",
        help="folder of the runs (default %(default)s)",
    )
    parser.add_argument("--jobs", type=int, default=1, help="runs at a time, a core each (1)")
    parser.add_argument(
        "--report", action="store_true", help="train nothing; write the table and the plot"
    )
    args = parser.parse_args(argv)
    if min(args.steps, args.precision, args.pairs, args.jobs) <= 0 or min(args.seeds) < 0:
        parser.error(
            "--steps, --precision, --pairs and --jobs must be positive, --seeds not negative"
        )
    return args


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
    pool = LocalPool(jobs)
    failed = 0
    try:
        futures: dict[Future[Run], Name] = {
            pool.submit(run, name, settings, folder, 1 + i % jobs): name
            for i, name in enumerate(names)
        }
        with tqdm(total=len(names), unit="run", desc="benchmark", position=0) as bar:
            for future in as_completed(futures):
                try:
                    last = future.result().points[-1]
                    said = f"{last.elo:.0f} Elo, {last.steps:,} steps, {last.seconds:.0f} seconds"
                except BrokenProcessPool:
                    raise
                except Exception as error:  # of a library: the other runs continue
                    failed += 1
                    said = f"failed: {type(error).__name__}: {error}"
                tqdm.write(f"{futures[future]}: {said}", file=sys.stderr)
                bar.update()
    except BaseException:
        pool.stop()  # otherwise learners would train to their ends
        raise
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
    return failed


def main(argv: list[str] | None = None) -> int:
    """Command line of ``python -m training.lab.benchmark``."""
    args = arguments(argv)
    settings = BenchmarkSettings(steps=args.steps, precision=args.precision, pairs=args.pairs)
    failed = 0
    try:
        if not args.report:
            names = chosen(args)
            with hold(args.out):
                todo = unfinished(names, settings, args.out)
                failed = train_all(todo, settings, args.out, args.jobs)
        print(summary.write(args.out))
    except (HeldError, ValueError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except BrokenProcessPool:
        print(
            "error: a process of a run died, perhaps for want of memory: give fewer --jobs; the "
            "same command continues",
            file=sys.stderr,
        )
        return 2
    except KeyboardInterrupt:
        print("\nstopped; the same command continues", file=sys.stderr)
        return 130
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
