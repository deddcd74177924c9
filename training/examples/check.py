"""Run the examples of other RL libraries, each library in its own virtual environment.

    python training/examples/check.py sb3 skrl
    python training/examples/check.py --all

For each library it makes a virtual environment, installs
``training/examples/requirements/LIBRARY.txt`` and this project, runs every example
``training/examples/LIBRARY_*.py``, and prints their rows of a Markdown table. The downloads are
large: up to 1.3 GB per library.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

EXAMPLES = Path(__file__).resolve().parent
ROOT = EXAMPLES.parent.parent
LIBRARIES = sorted(path.stem for path in (EXAMPLES / "requirements").glob("*.txt"))
HEAD = (
    "| library | version | route | processor seconds | win rate against random | against greedy |\n"
    "|---|---|---|---:|---|---|"
)


def examples_of(library: str) -> list[str]:
    """Return the names of a library's example modules, without the package."""
    return sorted(path.stem for path in EXAMPLES.glob(f"{library}_*.py"))


def default_folder() -> Path:
    """Return the default folder of the virtual environments."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "bao_env" / "venvs"


def python_in(folder: Path) -> Path:
    """Return the Python of a virtual environment."""
    return folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def prepare(library: str, folder: Path, fresh: bool) -> Path:
    """Make a virtual environment with a library and this project, and return its Python.

    Raises:
        subprocess.CalledProcessError: an installation failed; pip has said why.
    """
    if fresh:
        shutil.rmtree(folder, ignore_errors=True)
    python = python_in(folder)
    if not python.exists():
        print(f"making {folder}", file=sys.stderr)
        venv.create(folder, with_pip=True)
    requirements = EXAMPLES / "requirements" / f"{library}.txt"
    command = [str(python), "-m", "pip", "install", "--quiet"]
    command += ["-r", str(requirements), "-e", str(ROOT)]
    print(f"installing {library}", file=sys.stderr)
    # Keep what pip prints out of the table.
    subprocess.run(command, check=True, stdout=sys.stderr)
    return python


def run_example(python: Path, name: str) -> str:
    """Run an example, with its progress on stderr, and return its row of the table.

    Raises:
        subprocess.CalledProcessError: it failed, or did not beat greedy; it has said why.
        ValueError: it printed no row.
    """
    print(f"running {name}", file=sys.stderr)
    command = [str(python), str(EXAMPLES / f"{name}.py")]
    lines = []
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            print(line, end="", file=sys.stderr)
            lines.append(line.strip())
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    rows = [line for line in lines if line.startswith("| ")]
    if len(rows) != 1:
        raise ValueError(f"{name} printed {len(rows)} rows of the table: expected one")
    return rows[0]


def main(argv: list[str] | None = None) -> int:
    """Run the examples of the libraries that the arguments name; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "libraries", nargs="*", metavar="LIBRARY", help=f"one or more of {', '.join(LIBRARIES)}"
    )
    parser.add_argument("--all", action="store_true", help="all of them, one after another")
    parser.add_argument(
        "--venvs",
        type=Path,
        default=default_folder(),
        metavar="DIR",
        help="where the virtual environments are kept (default: %(default)s)",
    )
    parser.add_argument("--fresh", action="store_true", help="make the environments again")
    args = parser.parse_args(argv)
    unknown = [name for name in args.libraries if name not in LIBRARIES]
    if unknown:
        parser.error(f"unknown library {unknown[0]!r}: expected one of {', '.join(LIBRARIES)}")
    if args.all == bool(args.libraries):
        parser.error("name the libraries, or give --all alone")
    print(HEAD, flush=True)
    failed = []
    for library in LIBRARIES if args.all else args.libraries:
        try:
            python = prepare(library, args.venvs / library, args.fresh)
        except (subprocess.CalledProcessError, OSError) as error:
            print(f"{library}: not installed: {error}", file=sys.stderr)
            failed.append(library)
            continue
        for name in examples_of(library):
            try:
                print(run_example(python, name), flush=True)
            except (subprocess.CalledProcessError, OSError, ValueError) as error:
                print(f"{name}: {error}", file=sys.stderr)
                failed.append(name)
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
