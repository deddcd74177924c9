"""Run the command ``bao``: find its commands, and report their errors.

A command is a function ``command`` in a module of its own (:mod:`bao_agents.cli.options`), which is
imported only when the command is called. ``ValueError`` and ``OSError`` become one line on stderr
and the exit status 2. Ctrl-C becomes one line and the exit status 130.
"""

from __future__ import annotations

import argparse
import difflib
import io
import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from bao_agents.support.files import pages_folder
from bao_agents.support.output import optional, say

if TYPE_CHECKING:
    from bao_agents.cli.options import Run

GROUPS = {
    "play": {
        "play": ("bao_agents.cli.play", "play in a browser, against people or bots"),
        "rules": ("bao_agents.cli.rules", "print the rules of a rule set in plain words"),
        "players": ("bao_agents.cli.players", "list the players"),
        "engine": (
            "bao_agents.cli.engine",
            "let other programs use a player, over stdin and stdout",
        ),
        "replay": ("bao_agents.cli.replay", "show or review games, positions and moves"),
        "solve": (
            "bao_agents.cli.solve",
            "prove who wins, or make a file of exact values",
        ),
    },
    "learn": {
        "train": ("bao_training.commands.train", "train an agent by self-play, or resume a run"),
        "curve": ("bao_training.commands.curve", "draw the learning curves of runs"),
    },
    "measure": {
        "match": ("bao_agents.cli.match", "play matches of a player against others"),
        "tournament": ("bao_agents.cli.tournament", "play a round robin"),
        "rate": ("bao_agents.cli.rate", "rate a player on a ladder of bots, in Elo"),
        "blunders": ("bao_agents.cli.blunders", "count how often players give won games away"),
    },
    "for developers": {
        "bench engine": (
            "bao_agents.cli.bench_engine",
            "measure the speed of the environments",
        ),
        "bench search": ("bao_agents.cli.bench_search", "measure the searches"),
        "bench train": ("bao_training.commands.bench", "measure the speed of training"),
        "bench perft": ("bao_agents.cli.perft", "count all action sequences of a given length"),
        "warm-up": ("bao_training.commands.warm_up", "compile everything in advance"),
    },
}
"""The commands in groups.

For each name, of one or two words: the module with its function ``command``, and a summary."""

COMMANDS = {name: row for group in GROUPS.values() for name, row in group.items()}

_LONGEST_ERROR = 2000
"""The maximum length of an error message, in characters."""

EXTRAS = {
    "train": {"torch", "tensorboard", "matplotlib"},
    "play": {"starlette", "uvicorn", "cachetools"},
    "render": {"pygame", "PIL"},
}
"""The packages that each extra of this package installs."""


def find(name: str) -> Callable[[argparse.ArgumentParser], Run]:
    """Import the module of a command, and return its function ``command``."""
    command: Callable[[argparse.ArgumentParser], Run] = import_module(COMMANDS[name][0]).command
    return command


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command, report its errors, and return its exit status.

    Args:
        argv: the command line, without the program's name; None takes the process's command line.
    """
    words = list(sys.argv[1:] if argv is None else argv)
    if isinstance(sys.stdout, io.TextIOWrapper):  # escape characters that it cannot encode
        sys.stdout.reconfigure(errors="backslashreplace")
    return report_errors(lambda: _run(words, owns_process=argv is None))


def report_errors(run: Callable[[], int | None]) -> int:
    """Run a command, report its errors, and return its exit status.

    Args:
        run: the command; it returns its exit status, or None for 0.
    """
    try:
        with _environment_kept():
            status = run() or 0
            if sys.stdout is not None:
                sys.stdout.flush()  # results that cannot be written are an error
            return status
    except KeyboardInterrupt as stop:
        say(f"\nstopped{': ' + str(stop) if str(stop) else ''}")
        return 130
    except BrokenPipeError:  # for example "bao players | head"
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except ModuleNotFoundError as error:
        if not (advice := _missing(error)):
            raise
        _report(advice)
        return 2
    except MemoryError as error:
        _report(": ".join(filter(None, ["not enough memory", str(error)])))
        return 2
    except OSError as error:
        reason = f"{error.filename}: {error.strerror}" if error.filename else str(error)
        _report(reason)
        return 2
    except ValueError as error:
        _report(error)
        return 2
    except RuntimeError as error:
        from concurrent.futures import BrokenExecutor  # slow to import, and rarely needed

        if not isinstance(error, BrokenExecutor):
            raise
        _report(f"a worker process died, {_why_a_worker_died()}")
        return 1
    except SystemExit as end:  # argparse has printed help
        return int(end.code or 0)
    finally:
        with optional(sys.stdout), optional(sys.stderr):  # a failed flush changes no status
            pass


@contextmanager
def _environment_kept() -> Iterator[None]:
    """Restore, after the block, the environment variables that commands set for libraries."""
    names = ("BAO_ENV_QUIET", "TQDM_DISABLE", "OMP_NUM_THREADS")
    before = {name: os.environ[name] for name in names if name in os.environ}
    try:
        yield
    finally:
        for name in names:
            os.environ.pop(name, None)
        os.environ |= before


def _run(words: list[str], *, owns_process: bool) -> int:
    """Run one command and return its exit status.

    Args:
        words: the command line, without the program's name.
        owns_process: whether the command has this process to itself, so that it may exit at once.
    """
    if not words or words[0] in ("-h", "--help", "help"):
        print(_overview())
        return 0
    if words[0] == "--version":
        from bao_agents.support.provenance import current_commit
        from bao_env import __version__

        print(f"bao_env {__version__}, commit {current_commit()}")
        return 0
    if "--quiet" in words:  # before tqdm is imported
        os.environ |= {"BAO_ENV_QUIET": "1", "TQDM_DISABLE": "1"}
    run, args = parse(words)
    args.owns_process = owns_process
    for folder in getattr(args, "path", ()):
        if not os.path.isdir(folder):
            raise ValueError(f"--path {folder}: there is no such folder")
        # Appended last, so that no file there hides our packages. Worker processes inherit it.
        sys.path.append(str(Path(folder).resolve()))
    return run(args) or 0


def parse(words: Sequence[str]) -> tuple[Run, argparse.Namespace]:
    """Return the function that runs a command, and the command's arguments.

    Two arguments are added: ``words``, the command line, and ``given``, the names of the arguments
    that the command line sets. All others have their defaults.

    Args:
        words: the command line, without the program's name.

    Raises:
        ValueError: there is no such command, or the arguments are wrong.
        SystemExit: the arguments ask for help, which argparse has printed.
    """
    length = 2 if " ".join(words[:2]) in COMMANDS else 1
    name = " ".join(words[:length])
    if name not in COMMANDS:
        similar = [key for key in COMMANDS if key.startswith(f"{name} ")]
        similar = similar or difflib.get_close_matches(name, COMMANDS, 1)
        hint = f" (did you mean {' or '.join(map(repr, similar))}?)" if similar else ""
        raise ValueError(f"there is no command {name[:80]!r}{hint}: bao --help lists all commands")
    for number, word in enumerate(words[length:], 1):
        if re.fullmatch(r"(--[\w-]+=)?", word):
            raise ValueError(
                f"argument {number} of bao {name} is empty, perhaps because a variable of the "
                "shell is not set: leave it out, or give it a value"
            )
    summary = COMMANDS[name][1]
    parser = _Parser(
        prog=f"bao {name}",
        description=f"{summary[0].upper()}{summary[1:]}.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,  # --quiet is read before the others, and scripts outlive new options
    )
    run = find(name)(parser)
    parser.add_argument("--quiet", action="store_true", help="no progress bars and no notices")
    args = parser.parse_args(list(words[length:]))
    args.words = list(words)
    unset: list[object] = []  # replaces the defaults, to see which arguments are set
    explicit = argparse.Namespace(**dict.fromkeys(vars(args), unset))
    parser.parse_args(list(words[length:]), explicit)
    args.given = {name for name, value in vars(explicit).items() if value is not unset}
    from bao_agents.cli.options import check_results  # the command has imported it; it is slow

    check_results(args)
    return run, args


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are reported like all others, in one line."""

    def error(self, message: str) -> NoReturn:
        """Raise ValueError."""
        named = message.removeprefix("argument ")
        hint = f" ({self.prog} --help lists all arguments)" if named == message else ""
        unknown = re.search(r"unrecognized arguments:.*? (--[\w-]+)", message)
        if unknown:
            from bao_env.suggestions import did_you_mean  # slow to import, and rarely needed

            hint = did_you_mean(unknown[1], self._option_string_actions) or hint
        raise ValueError(f"{named}{hint}")


def _report(error: object) -> None:
    say(f"error: {_shortened(str(error))}")


def _shortened(message: str) -> str:
    """Return a message, without its middle if it is very long because it quotes a long text."""
    if len(message) <= _LONGEST_ERROR:
        return message
    half = _LONGEST_ERROR // 2
    return f"{message[:half]} ... {message[-half:]}"


def _why_a_worker_died() -> str:
    """Return the likely reason why a worker process died, and what to do."""
    main_module = sys.modules["__main__"]
    script = None if main_module.__spec__ else getattr(main_module, "__file__", None)
    if script and not os.path.exists(script):  # as for "python - < script.py"
        return (
            f"because it cannot import the script that started it, {script}: save the script in a "
            "file, with the calls under if __name__ == '__main__'"
        )
    return "possibly because memory ran out: run the same command again to continue or restart"


def _missing(error: ModuleNotFoundError) -> str:
    """Return how to install a missing package; an empty string if no extra installs it."""
    package = (error.name or "").partition(".")[0]
    for extra, packages in EXTRAS.items():
        if package in packages:
            return f"this needs {package}: pip install 'bao_env[{extra}]'"
    return ""


def _overview() -> str:
    """Return the text of ``bao --help``."""
    pages = pages_folder()
    groups = [
        "\n".join([f"{title}:", *(f"  {name:12}  {row[1]}" for name, row in rows.items())])
        for title, rows in GROUPS.items()
    ]
    return "\n\n".join(
        [
            "usage: bao COMMAND ...",
            "Bao la Kiswahili: play it, learn it, measure it.",
            *groups,
            "bao COMMAND --help lists the options of a command.\n"
            f"The guides begin with {pages / 'docs' / 'index.md'}, and the examples with "
            f"{pages / 'training' / 'examples' / 'README.md'}.",
        ]
    )
