"""The command ``bao``: the table of its commands, and what they share.

A command is a function in the module that does the work. It gets a parser, adds its arguments to
it, and returns the function that runs it::

    def command(parser):
        add_options(parser, "ruleset", "seed")
        return run  # called with the parsed arguments; its result is the exit status, None is 0

A module is imported only when its command is called. ``ValueError`` and ``OSError`` become one line
on stderr and the exit status 2; Ctrl-C becomes one line and the status 130.
"""

from __future__ import annotations

import argparse
import difflib
import json
import os
import pkgutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

Run: TypeAlias = Callable[[argparse.Namespace], int | None]


class Command(NamedTuple):
    """A row of :data:`COMMANDS`."""

    place: str
    """Its function, as ``module:name``."""
    summary: str
    """What it does, for ``--help``."""
    extra: str = ""
    """The extra of the package that it needs."""


COMMANDS = {
    "play": Command("bao_agents.play.command:command", "play in a browser, against anyone", "play"),
    "train": Command(
        "bao_training.train:command", "train an agent by self-play, or resume", "train"
    ),
    "match": Command("bao_training.match:command", "play two players against each other", "train"),
    "rate": Command(
        "bao_training.rate:command", "rate a player on a ladder of bots, in Elo", "train"
    ),
    "tournament": Command("bao_training.tournament:command", "play a round robin", "train"),
    "blunders": Command("bao_training.blunders:command", "count won games given away", "train"),
    "curve": Command("bao_training.curve:command", "draw how a run's generations improve", "train"),
    "players": Command("bao_agents.registry:command", "list the players"),
    "solve": Command("bao_agents.search.solver.command:command", "prove who wins a position"),
    "dataset": Command("bao_training.exact_values:command", "make a file of exact values", "train"),
    "export": Command("bao_agents.export:command", "write a network as an ONNX file", "export"),
    "replay": Command("bao_env.commands:replay_command", "check a game move by move, or draw it"),
    "explain": Command("bao_env.commands:explain_command", "print what a move does"),
    "show": Command("bao_env.commands:show_command", "print a position as a board"),
    "perft": Command("bao_env.perft:command", "count the action sequences of a length"),
    "warm-up": Command("bao_env.warm_up:command", "compile everything beforehand"),
    "bench": Command("bao_env.bench:command", "measure the speed of the environments"),
    "bench search": Command("bao_training.bench_search:command", "measure the searches", "train"),
    "bench train": Command("bao_training.bench:command", "measure the speed of training", "train"),
    "bench first-step": Command(
        "bao_training.lab.first_step:command", "measure compiling at first use", "train"
    ),
    "bench peers": Command("bao_training.lab.peers:command", "measure other libraries", "train"),
    "versus": Command("bao_training.versus:command", "play against another checkout", "train"),
    "fit": Command("bao_training.fit:command", "fit an evaluation of alpha-beta", "train"),
    "ladder": Command("bao_training.ladder:command", "make a ladder from a tournament", "train"),
    "lab benchmark": Command(
        "bao_training.lab.benchmark.command:command", "compare learners", "train"
    ),
    "lab card": Command("bao_training.lab.card:command", "measure the shipped networks", "train"),
    "lab census": Command(
        "bao_training.lab.census:command", "count early wins in kujifunza", "train"
    ),
    "lab certificate": Command(
        "bao_training.lab.certificate:command", "prove kujifunza won", "train"
    ),
    "lab tables": Command(
        "bao_training.lab.tables:command", "write the tables of documents", "train"
    ),
}
"""All commands by name. Names that begin with the same word are shown together."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command, and return the exit status.

    Args:
        argv: the words after ``bao``; None means those of the process.
    """
    words = list(sys.argv[1:] if argv is None else argv)
    try:
        return _run(words)
    except KeyboardInterrupt as stop:
        print(f"\nstopped{': ' + str(stop) if str(stop) else ''}", file=sys.stderr)
        return 130
    except BrokenPipeError:  # for example "bao players | head"
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:
        place = f"{error.filename}: {error.strerror}" if error.filename else str(error)
        print(f"error: {place}", file=sys.stderr)
        return 2
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except RuntimeError as error:
        from concurrent.futures import BrokenExecutor  # slow to import, and rarely needed

        if not isinstance(error, BrokenExecutor):
            raise
        print(
            "error: a worker process has ended, perhaps for want of memory: the same command "
            "continues, or begins again",
            file=sys.stderr,
        )
        return 1
    except SystemExit as end:  # argparse has printed help or an error
        return int(end.code or 0)


def _run(words: list[str]) -> int:
    if not words or words[0] in ("-h", "--help", "help"):
        print(_overview())
        return 0
    if words[0] == "--version":
        from bao_env import __version__

        print(__version__)
        return 0
    if "--quiet" in words:  # before tqdm is imported
        os.environ |= {"BAO_ENV_QUIET": "1", "TQDM_DISABLE": "1"}
    run, args = parse(words)
    for folder in getattr(args, "path", ()):
        if not os.path.isdir(folder):
            raise ValueError(f"--path {folder}: there is no such folder")
        # Behind our own packages, so that no file there hides them. Worker processes inherit it.
        sys.path.append(str(Path(folder).resolve()))
    for architecture in getattr(args, "allow", ()):
        pkgutil.resolve_name("bao_agents.registry:allow_architecture")(architecture)
    return run(args) or 0


def parse(words: Sequence[str]) -> tuple[Run, argparse.Namespace]:
    """Return the function that runs a command, and its arguments.

    Raises:
        ValueError: there is no such command, or a package that it needs is not installed.
        SystemExit: the arguments are wrong, or ask for help; argparse has printed why.
    """
    length = 2 if " ".join(words[:2]) in COMMANDS else 1
    name = " ".join(words[:length])
    command = COMMANDS.get(name)
    if command is None:
        akin = [key for key in COMMANDS if key.startswith(f"{name} ")]
        akin = akin or difflib.get_close_matches(name, COMMANDS, 1)
        hint = f"did you mean {' or '.join(repr(key) for key in akin)}?" if akin else "see"
        raise ValueError(f"there is no command {name[:80]!r}: {hint} bao --help lists all".strip())
    parser = argparse.ArgumentParser(
        prog=f"bao {name}",
        description=command.summary.capitalize() + ".",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    run = _import(name, command)(parser)
    parser.add_argument("--quiet", action="store_true", help="no progress bars and no notices")
    return run, parser.parse_args(list(words[length:]))


def _import(name: str, command: Command) -> Callable[[argparse.ArgumentParser], Run]:
    """Return the function of a command.

    Raises:
        ValueError: a package that it needs is not installed.
    """
    try:
        function: Callable[[argparse.ArgumentParser], Run] = pkgutil.resolve_name(command.place)
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing in ("bao_agents", "bao_training"):
            needed = "is not part of the wheel: it runs from a checkout of the repository"
        else:
            needed = f"needs {missing}: pip install -e '.[{command.extra or 'train'}]'"
        raise ValueError(f"bao {name} {needed}") from error
    return function


def _overview() -> str:
    """Return the text of ``bao --help``."""
    width = max(map(len, COMMANDS))
    rows = "\n".join(f"  {name:{width}}  {row.summary}" for name, row in COMMANDS.items())
    return (
        "usage: bao COMMAND ...\n\nBao la Kiswahili: play it, learn it, measure it.\n\n"
        f"{rows}\n\nbao COMMAND --help lists the options of a command."
    )


# --- what commands share --------------------------------------------------------------------------


def at_least(least: float, kind: type[int] | type[float] = int) -> Callable[[str], Any]:
    """Return a type of arguments: numbers of at least ``least``, whole ones by default."""

    def parse(text: str) -> int | float:
        try:
            number = kind(text)
        except ValueError:
            number = kind(least) - 1
        if not least <= number < 2**63:
            whole = "a whole number" if kind is int else "a number"
            raise argparse.ArgumentTypeError(
                f"{text[:40]!r}: expected {whole} of at least {least} and less than 2**63"
            )
        return number

    return parse


def new_file(text: str) -> str:
    """Return the name of a file to write, a type of arguments: its folder must exist.

    Without this check the work would be done before the file cannot be written.
    """
    folder = os.path.dirname(text) or "."
    if not os.path.isdir(folder):
        raise argparse.ArgumentTypeError(f"there is no folder {folder[:200]}: make it first")
    return text


def _ruleset(text: str) -> Any:
    from bao_env.rule_files import read_ruleset

    try:
        return read_ruleset(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


OPTIONS: dict[str, dict[str, Any]] = {
    "ruleset": {
        "type": _ruleset,
        "default": "zanzibar",
        "metavar": "RULES",
        "help": "zanzibar, kibao, kujifunza, malawi, dutch, or a .toml file of switches",
    },
    "seed": {"type": at_least(0), "default": 1, "help": "seed of everything that is random"},
    "threads": {"type": at_least(1), "default": os.cpu_count() or 1, "help": "cores to use"},
    "json": {
        "type": new_file,
        "metavar": "FILE",
        "help": "also write the results as JSON; - prints only them",
    },
    "out": {"type": Path, "metavar": "DIR", "help": "folder of the results"},
    "path": {
        "action": "append",
        "default": [],
        "metavar": "DIR",
        "help": "folder of your own modules; may be given several times",
    },
    "allow": {
        "action": "append",
        "default": [],
        "metavar": "MODULE:NAME",
        "help": "import this architecture, which a checkpoint names; may be given several times",
    },
}
"""The options that several commands have, with the arguments of argparse."""


def add_options(parser: argparse.ArgumentParser, *names: str, **defaults: Any) -> None:
    """Add options of :data:`OPTIONS` to a parser; those in ``defaults`` have another default."""
    for name in (*names, *defaults):
        option = dict(OPTIONS[name])
        option["default"] = defaults.get(name, option.get("default"))
        if option["default"] not in (None, [], ()):
            option["help"] += " (default: %(default)s)"
        parser.add_argument(f"--{name}", **option)


def add_player_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of commands that load players."""
    add_options(parser, "path", "allow")
    parser.epilog = "bao players lists the players."


def write_json(file: str | None, report: Any) -> None:
    """Write the results of ``--json FILE``; ``-`` is standard output, None writes nothing.

    Raises:
        OSError: the file cannot be written.
    """
    text = json.dumps(report, indent=2, allow_nan=False) + "\n"
    if file == "-":
        sys.stdout.write(text)
    elif file is not None:
        from bao_env.files import write_atomically

        write_atomically(file, text)


if __name__ == "__main__":
    sys.exit(main())
