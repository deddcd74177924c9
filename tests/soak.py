"""The standing watch: attacks drawn at random, one after another, until the time is up.

    python -m tests.soak 60                           # for an hour
    python -m tests.soak 60 --only board checkpoints  # with some of the attacks
    python -m tests.soak 0 --only board --seed 17     # one attack, as it went with that seed

:mod:`tests.attacks` has the attacks. Each runs in a process of its own: an exception, a crash and a
hang are all failures, and the watch goes on. It ends with a table, and status 1 if anything failed.
Most attacks need Linux.
"""

from __future__ import annotations

import argparse
import contextlib
import faulthandler
import os
import random
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

from tabulate import tabulate
from tqdm import tqdm

from agents.arena.executors import end_with_parent
from tests.attacks import ATTACKS, Attack

_SHOWN_LINES = 40


@dataclass
class Count:
    """How often an attack ran, and how often it failed."""

    runs: int = 0
    failures: int = 0


def _attack(attack: Attack, seed: int, folder: Path) -> None:
    """What the process of an attack does; it exits with a status other than 0 if it failed."""
    os.setsid()  # so that whatever it starts can be ended with it
    end_with_parent()
    log = os.open(folder / "log", os.O_WRONLY | os.O_CREAT)
    os.dup2(log, 1)
    os.dup2(log, 2)
    faulthandler.enable()
    work = folder / "work"
    work.mkdir()
    try:
        attack.run(random.Random(seed), work)
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(1)


def run_attack(attack: Attack, seed: int) -> str:
    """Run an attack once.

    Args:
        attack: what to run.
        seed: of all that it draws.

    Returns:
        what went wrong, with the end of what the attack wrote; empty if nothing did.
    """
    with tempfile.TemporaryDirectory(prefix="soak-", ignore_cleanup_errors=True) as name:
        process = get_context("spawn").Process(target=_attack, args=(attack, seed, Path(name)))
        process.start()
        assert process.pid is not None
        try:
            process.join(attack.seconds)
            hangs = process.is_alive()
        finally:
            with contextlib.suppress(ProcessLookupError):  # nothing is left of its group
                os.killpg(process.pid, signal.SIGKILL)
            process.kill()
            process.join()
        if not hangs and process.exitcode == 0:
            return ""
        log = Path(name) / "log"
        text = log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""
    status = process.exitcode or 0
    if hangs:
        why = f"not finished after {attack.seconds:g} s"
    elif status < 0:
        why = f"died of {signal.Signals(-status).name}"
    else:
        why = f"exit status {status}"
    return "\n".join([why, *text.splitlines()[-_SHOWN_LINES:]])


def watch(attacks: Mapping[str, Attack], seconds: float, seed: int) -> dict[str, Count]:
    """Run attacks drawn at random until the time is up, at least one.

    Args:
        attacks: by name.
        seconds: how long; the last attack may take longer.
        seed: of the first attack; each further one has the next number.

    Returns:
        the counts by name. A Ctrl-C ends the watch early.
    """
    counts = {name: Count() for name in attacks}
    begun = time.monotonic()
    form = "{desc} {percentage:3.0f}%|{bar}| {elapsed}<{remaining} {postfix}"
    with tqdm(total=max(1, round(seconds)), desc="attacks", bar_format=form) as bar:
        try:
            while True:
                name = random.Random(seed).choice(list(attacks))
                bar.set_postfix_str(
                    f"{sum(count.runs for count in counts.values())} runs, now {name}"
                )
                found = run_attack(attacks[name], seed)
                counts[name].runs += 1
                if found:
                    counts[name].failures += 1
                    again = f"python -m tests.soak 0 --only {name} --seed {seed}"
                    bar.write(f"\nFAILED: {name}, seed {seed} ({again}): {found}\n")
                seed += 1
                bar.update(min(round(time.monotonic() - begun), bar.total) - bar.n)
                if time.monotonic() - begun >= seconds:
                    break
        except KeyboardInterrupt:
            pass
    return counts


def table(counts: Mapping[str, Count]) -> str:
    """The counts as a Markdown table."""
    rows = [[name, count.runs, count.failures] for name, count in counts.items()]
    return tabulate(rows, ["attack", "runs", "failures"], tablefmt="pipe")


def main(argv: list[str] | None = None) -> int:
    """Command line of ``python -m tests.soak``."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.soak", description="Attack everything, at random, for some minutes."
    )
    parser.add_argument("minutes", type=float, metavar="MINUTES")
    parser.add_argument("--seed", type=int, help="of the first attack; default: another each time")
    parser.add_argument("--only", nargs="+", choices=ATTACKS, metavar="NAME", default=list(ATTACKS))
    args = parser.parse_args(argv)
    if args.minutes < 0 or (args.seed is not None and args.seed < 0):
        parser.error("MINUTES and --seed must not be negative")
    seed = random.SystemRandom().randrange(1 << 31) if args.seed is None else args.seed
    counts = watch({name: ATTACKS[name] for name in args.only}, 60 * args.minutes, seed)
    print(table(counts))
    return 1 if any(count.failures for count in counts.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
