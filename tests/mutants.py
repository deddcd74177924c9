"""Break the code in small ways, and print what no test sees: ``python -m tests.mutants``.

A mutant is one change outside compiled functions: another comparison, constant or operator; a
negated condition; a call, a ``raise`` or a keyword argument left out; None returned. It is tried
with the tests that run its line, beginning with the tests that run the fewest lines; outside
functions, with the tests that run little but its file. A mutant that survives shows that a test is
missing, or changes nothing; a reader has to decide.

It needs ``pip install coverage``, and an hour for all three packages. First the fast tests run
once, to find out which lines each test runs. ``--coverage FOLDER`` stores these lines, for further
draws from the same code. ``--tests`` chooses fewer tests, and mutants only of the lines that these
run. No file is changed: the mutant replaces its module when Python imports it, so nothing is
compiled again.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import json
import os
import random
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, NoReturn

import pytest

ROOT = Path(__file__).parent.parent
PACKAGES = {
    "bao_env": ROOT / "bao_env",
    "bao_agents": ROOT / "agents/bao_agents",
    "bao_training": ROOT / "training/bao_training",
}
"""The folder of each package."""

COVERAGE = """
[run]
core = ctrace
parallel = true
context = ${{PYTEST_CURRENT_TEST-}}
data_file = {folder}/lines
source = {packages}
disable_warnings = no-data-collected
"""
"""Settings of ``coverage``. A process that a test starts has that test as its context."""

MUTATE_IMPORT = """
import os
from importlib.machinery import SourceFileLoader
get_code = SourceFileLoader.get_code
def get_mutant(self, name):
    if os.path.realpath(self.path) != {file!r}:
        return get_code(self, name)
    with open({mutant!r}, encoding="utf-8") as file:
        return compile(file.read(), self.path, "exec", dont_inherit=True)
SourceFileLoader.get_code = get_mutant
"""
"""The ``sitecustomize`` that every Python runs when it starts, including the processes that tests
start."""

COMPARISONS = {
    ast.Lt: "<=",
    ast.LtE: "<",
    ast.Gt: ">=",
    ast.GtE: ">",
    ast.Eq: "!=",
    ast.NotEq: "==",
}
OPERATORS = {
    ast.Add: "-",
    ast.Sub: "+",
    ast.Mult: "+",
    ast.FloorDiv: "*",
    ast.Div: "*",
    ast.Mod: "*",
}
LIBRARIES = "numba", "torch", "gymnasium", "pettingzoo"
"""They are imported once, before the mutants, because this takes longer than most tests."""


class Mutant(NamedTuple):
    """A change of a file: where it is, the text there, and the text that replaces it."""

    file: Path
    node: ast.stmt | ast.expr
    replacement: str
    kind: str
    statement: int
    """The line at which the statement begins, or 0 outside functions."""

    def source(self) -> str:
        """Return the source with the change. Its lines keep their numbers."""
        lines = self.file.read_bytes().splitlines(keepends=True)
        first, last = self.node.lineno - 1, (self.node.end_lineno or 0) - 1
        before = lines[first][: self.node.col_offset]
        after = lines[last][self.node.end_col_offset :]
        # Parentheses keep the line breaks of the replaced code valid.
        breaks = b"\\\n" * (last - first)
        changed = before + self.replacement.encode() + breaks + after
        return b"".join([*lines[:first], changed, *lines[last + 1 :]]).decode()

    def __str__(self) -> str:
        old = " ".join(ast.unparse(self.node).split())
        name = f"{self.file.relative_to(ROOT)}:{self.node.lineno}"
        return f"{name} | {self.kind} | `{old[:60]}` | `{self.replacement[:60]}`"


def mutants_of(file: Path) -> Iterator[Mutant]:
    """Yield the mutants of a file, outside compiled functions, type hints and docstrings.

    The constants of a file with compiled functions and of ``layout.py`` count as compiled, too.
    """
    text = file.read_text(encoding="utf-8")
    has_compiled = re.search(f"@({_COMPILERS})", text) or file.name == "layout.py"
    pending: list[tuple[ast.AST, int]] = [(ast.parse(text), 0)]
    while pending:
        node, statement = pending.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            if _is_compiled(node):
                continue
            pending += [(child, child.lineno) for child in node.body]
            defaults = [*node.args.defaults, *filter(None, node.args.kw_defaults)]
            pending += [(default, statement) for default in defaults]
            continue
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            continue
        if statement and isinstance(node, ast.stmt):
            statement = node.lineno
        for replacement, kind in _changes(node):
            if has_compiled and not statement:
                break
            assert isinstance(node, ast.expr | ast.stmt)
            yield Mutant(file, node, replacement, kind, statement)
        if isinstance(node, ast.AnnAssign):
            pending += [(node.value, statement)] if node.value else []
        elif not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
            pending += [(child, statement) for child in ast.iter_child_nodes(node)]


_COMPILERS = "jit|intrinsic|overload|lower_builtin|type_callable"
"""A pattern of the decorators of functions that are compiled, or make code for others."""


def _is_compiled(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Return whether a function is compiled, or runs only while numba compiles others.

    Numba's cache holds what such a function did, so no test would see a change.
    """
    decorators = " ".join(map(ast.unparse, function.decorator_list))
    return "builder" in [argument.arg for argument in function.args.args] or bool(
        re.search(_COMPILERS, decorators)
    )


def _changes(node: ast.AST) -> Iterator[tuple[str, str]]:
    """Yield the texts that may replace a node, each with the kind of the change."""
    if isinstance(node, ast.Compare) and type(node.ops[0]) in COMPARISONS and len(node.ops) == 1:
        left, right = ast.unparse(node.left), ast.unparse(node.comparators[0])
        yield f"({left} {COMPARISONS[type(node.ops[0])]} {right})", "comparison"
    elif isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
        left, right = ast.unparse(node.left), ast.unparse(node.right)
        yield f"(({left}) {OPERATORS[type(node.op)]} ({right}))", "arithmetic"
    elif isinstance(node, ast.BoolOp):
        word = " or " if isinstance(node.op, ast.And) else " and "
        yield f"({word.join(f'({ast.unparse(value)})' for value in node.values)})", "and, or"
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield str(not node.value), "constant"
    elif isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        yield str(node.value + 1), "constant"
    elif isinstance(node, ast.If | ast.While | ast.IfExp):
        return  # their conditions are mutated as nodes of their own
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield f"bool({ast.unparse(node.operand)})", "condition"
    elif isinstance(node, ast.Raise):
        yield "pass", "raise removed"
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        yield "pass", "call removed"
    elif isinstance(node, ast.Return) and node.value and ast.unparse(node) != "return None":
        yield "return None", "None returned"
    elif isinstance(node, ast.Call) and node.keywords and node.keywords[-1].arg:
        shorter = ast.Call(node.func, node.args, node.keywords[:-1])
        yield ast.unparse(shorter), "keyword removed"


def pytest_runtest_logstart(nodeid: str) -> None:
    """Tell ``coverage`` which test begins. This file is also a plugin of pytest."""
    from coverage import Coverage

    if coverage := Coverage.current():
        coverage.switch_context(nodeid)


def run_tests(folder: Path, tests: list[str]) -> None:
    """Run tests, and write into a folder which lines each of them runs."""
    folder.mkdir(parents=True, exist_ok=True)
    packages = "\n  ".join(map(str, PACKAGES.values()))
    (folder / "settings").write_text(COVERAGE.format(folder=folder, packages=packages))
    command = [sys.executable, "-m", "pytest", "-q", "-p", "tests.mutants", *tests]
    environment = os.environ | {"COVERAGE_PROCESS_START": str(folder / "settings")}
    subprocess.run(
        [*command, "-o", f"cache_dir={folder}"], cwd=ROOT, env=environment, stdout=2, check=False
    )
    combine = ["combine", "--quiet", f"--rcfile={folder / 'settings'}"]
    subprocess.run([sys.executable, "-m", "coverage", *combine], cwd=ROOT, check=True)


def lines_in_functions(file: Path) -> set[int]:
    """Return the lines of a file that do not run at import."""
    functions = [
        node
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    return {
        line
        for function in functions
        for line in range(function.body[0].lineno, (function.end_lineno or 0) + 1)
    }


class Lines:
    """Which tests run which lines. Tests that fail without a mutant are left out."""

    def __init__(self, folder: Path) -> None:
        from coverage import CoverageData

        self.lines: dict[tuple[str, int], set[str]] = {}
        self.before_tests = set[tuple[str, int]]()
        self.sizes = Counter[str]()
        self.sizes_in: dict[Path, Counter[str]] = defaultdict(Counter)
        failures = folder / "v/cache/lastfailed"
        failed = set(json.loads(failures.read_text())) if failures.exists() else set()
        measured = CoverageData(str(folder / "lines"))
        measured.read()
        for file in measured.measured_files():
            in_functions = lines_in_functions(Path(file))
            for line, contexts in measured.contexts_by_lineno(file).items():
                # A process that a test has started says "tests/test_cli.py::test_help (call)".
                names = (re.sub(r" \((setup|call|teardown)\)$", "", name) for name in contexts)
                tests = {name for name in names if "::" in name}
                self.lines[file, line] = tests - failed
                if "" in contexts:
                    self.before_tests.add((file, line))
                if line in in_functions:
                    self.sizes.update(tests - failed)
                    self.sizes_in[Path(file)].update(tests - failed)
                    self.sizes_in[Path(file).parent].update(tests - failed)

    def tests(self, mutant: Mutant) -> list[str]:
        """Return the tests to try a mutant with, beginning with those most likely to notice it."""
        file = str(mutant.file)
        sizes = self.sizes_in[mutant.file] or self.sizes_in[mutant.file.parent]
        in_file = sorted(sizes, key=lambda test: (-sizes[test] / self.sizes[test], test))
        if not mutant.statement:
            return in_file
        line = file, mutant.node.lineno
        if not self.lines.get(line):
            line = file, mutant.statement
        tests = sorted(self.lines.get(line, ()), key=lambda test: (self.sizes[test], test))
        # What a line did before the tests, such as a constant, may be used by other tests.
        tests_elsewhere = [test for test in in_file if test not in tests]
        return [*tests, *(tests_elsewhere if line in self.before_tests else ())]


def try_mutant(mutant: Mutant, tests: list[str], folder: Path, seconds: int) -> str:
    """Run tests with a mutant in a fork of this process.

    Args:
        mutant: the mutant.
        tests: the tests, in order.
        folder: where files may be written, such as the output of pytest, ``log``.
        seconds: the most processor time for one process.

    Returns:
        "killed", "left", or "slow" if they take too long.
    """
    (folder / "mutant").write_text(mutant.source(), encoding="utf-8")
    names = {"file": str(mutant.file.resolve()), "mutant": str(folder / "mutant")}
    (folder / "sitecustomize.py").write_text(MUTATE_IMPORT.format(**names))
    child = os.fork()
    if not child:
        _run_tests_and_exit(tests, folder, seconds)
    end = time.monotonic() + 10 * seconds  # a mutant may wait for ever, and a machine be busy
    ended, status = 0, 0
    while not ended and time.monotonic() < end:
        time.sleep(0.1)
        ended, status = os.waitpid(child, os.WNOHANG)
    with suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    if not ended:
        os.waitpid(child, 0)
        return "slow"
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) in (signal.SIGXCPU, signal.SIGKILL):
        return "slow"
    return "killed" if status else "left"


def _run_tests_and_exit(tests: list[str], folder: Path, seconds: int) -> NoReturn:
    """Run tests with the mutant in a folder, in this process."""
    status = 1
    try:
        os.setsid()
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
        log = os.open(folder / "log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(log, 1)
        os.dup2(log, 2)
        paths = [str(folder), *filter(None, [os.environ.get("PYTHONPATH")])]
        os.environ["PYTHONPATH"] = os.pathsep.join(paths)
        exec((folder / "sitecustomize.py").read_text(), {})
        status = pytest.main(["-x", "-q", "-n", "0", "-p", "no:cacheprovider", *tests])
    finally:
        os._exit(status)


def main() -> None:
    """Draw mutants, try them, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("packages", nargs="*", default=list(PACKAGES), metavar="PACKAGE")
    parser.add_argument("--tests", nargs="+", metavar="FILE", help="instead of all fast ones")
    parser.add_argument("--coverage", type=Path, metavar="FOLDER", help="of these tests; kept")
    parser.add_argument("--count", type=int, default=20, help="mutants of each package")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--most-tests", type=int, default=30, help="for one mutant")
    parser.add_argument("--seconds", type=int, default=60, help="of processor, for one mutant")
    parser.add_argument("--all", action="store_true", help="print those that tests notice, too")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        coverage = (options.coverage or folder / "coverage").absolute()
        if not (coverage / "lines").exists():
            run_tests(coverage, options.tests or ["tests"])
        lines = Lines(coverage)
        os.environ.setdefault("OMP_NUM_THREADS", "1")
        for library in LIBRARIES:
            importlib.import_module(library)
        for package in options.packages:
            files = sorted(PACKAGES[package].rglob("*.py"))
            every = [mutant for file in files for mutant in mutants_of(file)]
            if options.tests:
                every = [mutant for mutant in every if lines.tests(mutant)]
            rng = random.Random(f"{options.seed} {package}")
            drawn = rng.sample(every, min(options.count, len(every)))
            results = Counter[str]()
            print(f"\n## {package}: {len(drawn)} of {len(every)} mutants\n")
            print("| place | kind | was | is | result |\n|---|---|---|---|---|", flush=True)
            for mutant in drawn:
                tests = lines.tests(mutant)[: options.most_tests]
                result = "no test runs it"
                if tests:
                    result = try_mutant(mutant, tests, folder, options.seconds)
                results[result] += 1
                if result != "killed" or options.all:
                    print(f"| {mutant} | {result}, {len(tests)} tests |", flush=True)
            children = resource.getrusage(resource.RUSAGE_CHILDREN)
            print(f"\n{dict(results)}", end=" ")
            print(
                f"So far {children.ru_utime + children.ru_stime:.0f} s of processor time.",
                flush=True,
            )


if __name__ == "__main__":
    main()
