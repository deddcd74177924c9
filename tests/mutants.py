"""Break the code in small ways, and print what no test sees: ``python -m tests.mutants``.

A mutant is one change outside compiled functions: another comparison, constant or operator; a
negated condition; a call, a ``raise`` or a keyword argument left out; None returned. It is tried
with the tests that run its line, beginning with the tests that run the fewest lines. A mutant that
survives shows that a test is missing, or changes nothing; a reader has to decide.

It needs ``pip install coverage``, and an hour for all three packages. First the package's fast
tests run once, in one process, to find out which lines each test runs. ``--tests`` chooses fewer
tests, and mutants only of the lines that these run. No file is changed: the mutant replaces its
module when Python imports it, so nothing is compiled again.
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
PACKAGES = {
    "bao_env": ("bao_env", "tests/env"),
    "bao_agents": ("agents/bao_agents", "tests/agents"),
    "bao_training": ("training/bao_training", "tests/training"),
}
"""The folder of each package, and of its tests."""

MUTATE_IMPORT = """
import os
from importlib.machinery import SourceFileLoader
get_code = SourceFileLoader.get_code
def get_mutant(self, name):
    if os.path.realpath(self.path) != os.environ["MUTANT_OF"]:
        return get_code(self, name)
    with open(os.environ["MUTANT"], encoding="utf-8") as file:
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


class Mutant(NamedTuple):
    """A change of a file: where it is, the text there, and the text that replaces it."""

    file: Path
    node: ast.stmt | ast.expr
    replacement: str
    kind: str

    @property
    def place(self) -> tuple[str, int]:
        """The file and the line of the change."""
        return str(self.file), self.node.lineno

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
    """Yield the mutants of a file, outside compiled functions, type hints and docstrings."""
    pending: list[ast.AST] = [ast.parse(file.read_text(encoding="utf-8"))]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.FunctionDef):
            if any("jit" in ast.unparse(decorator) for decorator in node.decorator_list):
                continue
            pending += [*node.body, *node.args.defaults]
            continue
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            continue
        for replacement, kind in _changes(node):
            assert isinstance(node, ast.expr | ast.stmt)
            yield Mutant(file, node, replacement, kind)
        if isinstance(node, ast.AnnAssign):
            pending += [node.value] if node.value else []
        elif not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
            pending += ast.iter_child_nodes(node)


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


def tests_by_line(package: str, folder: Path, tests: list[str]) -> dict[tuple[str, int], list[str]]:
    """Return the tests that run each line of a package, beginning with the tests that run the
    fewest lines."""
    from coverage import CoverageData

    source = PACKAGES[package][0]
    data = folder / f"{package}.coverage"
    settings = folder / "coveragerc"
    settings.write_text(f"[run]\ndynamic_context = test_function\nsource = {ROOT / source}\n")
    command = ["coverage", "run", f"--rcfile={settings}", f"--data-file={data}", "-m", "pytest"]
    command += ["-q", "-n", "0", "-p", "no:cacheprovider", *tests]
    if subprocess.run([sys.executable, "-m", *command], cwd=ROOT, check=False).returncode:
        print("These tests fail without a mutant; what follows counts them as noticing it.")
    lines, size = {}, Counter[str]()
    measured = CoverageData(str(data))
    measured.read()
    for file in measured.measured_files():
        for line, contexts in measured.contexts_by_lineno(file).items():
            names = [context for context in contexts if "test_" in context]
            if names:  # without tests, the line runs only at import
                lines[file, line] = names
                size.update(names)
    return {place: sorted(names, key=size.__getitem__) for place, names in lines.items()}


def survives(mutant: Mutant, tests: list[str], folder: Path, seconds: float) -> bool:
    """Return whether the tests pass with a mutant; tests that take too long do not pass."""
    (folder / "mutant").write_text(mutant.source(), encoding="utf-8")
    (folder / "sitecustomize.py").write_text(MUTATE_IMPORT)
    path = os.pathsep.join([str(folder), *os.environ.get("PYTHONPATH", "").split(os.pathsep)])
    environment = os.environ | {
        "PYTHONPATH": path,
        "MUTANT": str(folder / "mutant"),
        "MUTANT_OF": str(mutant.file.resolve()),
    }
    names = []
    for test in tests:
        module, _, function = test.rpartition(".")
        names.append(f"{module.replace('.', '/')}.py::{function}")
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-n", "0", "-p", "no:cacheprovider"]
    try:
        done = subprocess.run(
            [*command, *names], cwd=ROOT, env=environment, capture_output=True, timeout=seconds
        )
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0


def main() -> None:
    """Draw mutants, try them, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("packages", nargs="*", default=list(PACKAGES), metavar="PACKAGE")
    parser.add_argument("--tests", nargs="+", metavar="FILE", help="instead of the package's")
    parser.add_argument("--count", type=int, default=20, help="mutants of each package")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--most-tests", type=int, default=30, help="for one mutant")
    parser.add_argument("--seconds", type=float, default=300, help="for one mutant")
    options = parser.parse_args()
    rng = random.Random(options.seed)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for package in options.packages:
            lines = tests_by_line(package, folder, options.tests or [PACKAGES[package][1]])
            files = sorted((ROOT / PACKAGES[package][0]).rglob("*.py"))
            every = [mutant for file in files for mutant in mutants_of(file)]
            if options.tests:
                every = [mutant for mutant in every if mutant.place in lines]
            drawn = rng.sample(every, min(options.count, len(every)))
            left = 0
            print(f"\n## {package}: {len(drawn)} of {len(every)} mutants\n")
            print("| place | kind | was | is |\n|---|---|---|---|")
            for mutant in drawn:
                tests = lines.get(mutant.place, [])
                tests = tests[: options.most_tests]
                if not tests or survives(mutant, tests, folder, options.seconds):
                    left += 1
                    note = "" if tests else ", no test runs it"
                    print(f"| {mutant}{note} |", flush=True)
            print(f"\n{left} of {len(drawn)} are left.")


if __name__ == "__main__":
    main()
