"""Test documents: links and commands exist, and examples run, including those of docstrings."""

from __future__ import annotations

import ast
import doctest
import importlib
import json
import re
import shlex
from pathlib import Path

import pytest

import bao_env
from bao_agents.arena.ladder import anchors_elo, load_ladder
from bao_agents.cli.main import COMMANDS, parse
from bao_agents.support.provenance import digest
from bao_env.engine.ruleset import RULESETS
from docs.results import shipped_file
from tests.conftest import Capsys

ROOT = Path(__file__).parent.parent
PLAYERS = ROOT / "agents" / "bao_agents"
DOCUMENTS = sorted(
    path
    for folder in (".", "bao_env", "agents", "training", "docs", "tests")
    for path in (ROOT / folder).glob("*.md" if folder == "." else "**/*.md")
)
TEXTS = {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in DOCUMENTS}
MODULES_WITH_EXAMPLES = sorted(
    ".".join(path.relative_to(package.parent).with_suffix("").parts).removesuffix(".__init__")
    for package in (ROOT / "bao_env", ROOT / "agents/bao_agents", ROOT / "training/bao_training")
    for path in package.rglob("*.py")
    if re.search(r"^ *>>> ", path.read_text(encoding="utf-8"), re.MULTILINE)
)


def anchors(text: str) -> set[str]:
    """Return the anchors of a document: its headings as GitHub spells them."""
    headings = re.findall(
        r"^#+ (.+)$", re.sub(r"```.*?```", "", text, flags=re.DOTALL), re.MULTILINE
    )
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("name", TEXTS)
def test_links_exist(name: str) -> None:
    missing = []
    for link in re.findall(r"\]\((?!https?:)([^)]+)\)", TEXTS[name]):
        path, _, anchor = link.partition("#")
        target = (ROOT / name).parent / path if path else ROOT / name
        if not target.exists() or (
            anchor and anchor not in anchors(target.read_text(encoding="utf-8"))
        ):
            missing.append(link)
    assert not missing


def commands(text: str) -> list[str]:
    """Return the ``bao`` commands in the code of a document."""
    blocks = re.findall(r"^```sh\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    lines = [line for block in blocks for line in block.replace("\\\n", " ").splitlines()]
    spans = re.findall(
        r"`([^`\n]+)`", re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    )
    parts = [part.strip() for line in [*lines, *spans] for part in re.split("&&|  #| > ", line)]
    return [part for part in parts if re.match(r"bao [a-z]", part) and "..." not in part]


@pytest.mark.parametrize("name", TEXTS)
def test_commands_are_understood(name: str, capsys: Capsys) -> None:
    """The parsers accept the commands; a code span may leave out the arguments."""
    for command in commands(TEXTS[name]):
        words = shlex.split(command)[1:]
        if " ".join(words) in COMMANDS or " ".join(words) in ("--help", "bench"):
            continue
        try:
            parse(words)
        except SystemExit as end:
            assert not end.code, f"{command}: {capsys.readouterr().err}"


@pytest.mark.parametrize(
    "name", [name for name, text in TEXTS.items() if ">>> " in text and "/api/" not in name]
)
def test_examples(name: str) -> None:
    results = doctest.testfile(
        str(ROOT / name), module_relative=False, optionflags=doctest.NORMALIZE_WHITESPACE
    )
    assert results.attempted and results.failed == 0


@pytest.mark.parametrize("module", MODULES_WITH_EXAMPLES)
def test_examples_of_docstrings(module: str) -> None:
    results = doctest.testmod(
        importlib.import_module(module), optionflags=doctest.NORMALIZE_WHITESPACE
    )
    assert results.attempted and results.failed == 0


@pytest.mark.parametrize("name", TEXTS)
def test_code_imports_what_exists(name: str) -> None:
    for block in re.findall(r"^```python\n(.*?)^```", TEXTS[name], re.DOTALL | re.MULTILINE):
        for line in re.findall(
            r"^(?:from|import) bao_(?:env|agents|training).*", block, re.MULTILINE
        ):
            try:
                exec(line)
            except ModuleNotFoundError as error:  # an RL library may be missing
                assert not (error.name or "").startswith("bao_")


@pytest.mark.parametrize("name", [name for name, text in TEXTS.items() if "```toml" in text])
def test_rule_files_are_read(name: str, tmp_path: Path) -> None:
    for block in re.findall(r"^```toml\n(.*?)^```", TEXTS[name], re.DOTALL | re.MULTILINE):
        if "[project" not in block:
            file = tmp_path / "mine.toml"
            file.write_text(block, encoding="utf-8")
            assert bao_env.load_ruleset(file).name == "mine"


def test_notebook_has_the_outputs_of_its_cells(capsys: Capsys) -> None:
    """Cells that train, and those that use the trained network, are only run on the site."""
    file = ROOT / "training" / "examples" / "first-steps.ipynb"
    notebook = json.loads(file.read_text(encoding="utf-8"))
    names: dict[str, object] = {}
    for cell in notebook["cells"]:
        code = "".join(cell["source"])
        if cell["cell_type"] != "code" or "runs/" in code or code.startswith("!"):
            continue
        statements = ast.parse(code).body
        last = [statements.pop()] if isinstance(statements[-1], ast.Expr) else []
        exec(compile(ast.Module(statements, []), "cell", "exec"), names)
        values = [eval(ast.unparse(node), names) for node in last]
        printed = [repr(value) for value in values if value is not None]
        stored = [
            "".join(output.get("text") or output["data"]["text/plain"])
            for output in cell["outputs"]
        ]
        assert "".join(stored) == "".join([capsys.readouterr().out, *printed])
        pictures = [output.get("data", {}).get("image/svg+xml", ()) for output in cell["outputs"]]
        boards = [value.svg() for value in values if isinstance(value, bao_env.Board)]
        assert "".join(map("".join, pictures)) == "".join(boards), "run jupyter execute --inplace"


def test_every_public_name_has_its_place_in_the_reference() -> None:
    pages = "".join(text for name, text in TEXTS.items() if name.startswith("docs/api/"))
    assert not [name for name in bao_env.__all__ if f" bao_env.{name} " not in pages]


def test_citations_have_the_version() -> None:
    assert f"\nversion: {bao_env.__version__}\n" in (ROOT / "CITATION.cff").read_text("utf-8")
    assert f"version = {{{bao_env.__version__}}}" in TEXTS["docs/cite.md"]


def test_oldest_dependencies_are_those_of_the_package() -> None:
    row = re.search(r"^\| oldest dependencies \|.*", TEXTS["docs/versions.md"], re.MULTILINE)
    assert row
    oldest = re.findall(r"(numpy|numba|Gymnasium|PettingZoo) ([\d.]+\d)", row[0])
    package = (ROOT / "pyproject.toml").read_text("utf-8")
    assert len(oldest) == 4
    assert not [name for name, number in oldest if f'"{name.lower()}>={number}"' not in package]


def test_the_card_has_the_digest_of_each_file_that_ships() -> None:
    """If a file changes, update its row, and measure the numbers that depend on it again."""
    digests = {}
    for name, mark in re.findall(
        r"^\| `(\S+)` \| `(\w{16})`", TEXTS["agents/MODELS.md"], re.MULTILINE
    ):
        digests[shipped_file(name)] = mark
    patterns = (
        "checkpoints/**/*.safetensors",
        "**/*.npz",
        "**/*.tsv",
        "**/*.jsonl",
        "arena/ladders/*.json",
    )
    shipped = {file for pattern in patterns for file in PLAYERS.glob(pattern)}
    assert digests == {file: digest(file) for file in shipped}


@pytest.mark.parametrize("name", [name for name in TEXTS if "/api/" not in name])
def test_a_table_of_numbers_has_its_command(name: str) -> None:
    """A section with measured numbers, those with an interval or decimals, says how to repeat them.

    What an Elo means is Elo's formula, which ``test_what_an_elo_means`` computes.
    """
    for section in re.split(r"^(?=#+ )", TEXTS[name], flags=re.MULTILINE):
        numbers = re.search(
            r"^\|.*\| [\d,.%]*\d( \([\d.,%]+ to [^|]*\))?%? \|", section, re.MULTILINE
        )
        command = re.search(
            r"`(bao|python|uv|git|lab|bench) |^(bao|python) ", section, re.MULTILINE
        )
        assert command or not numbers or section.startswith("## What an Elo"), section[:80]


def test_numbers_of_a_file_name_its_digest() -> None:
    """If a file changes, measure the numbers that depend on it again."""
    digests = re.findall(r"`([\w./-]+)`\s+`([0-9a-f]{16})`", "\n".join(TEXTS.values()))
    assert len(digests) >= 9
    for name, mark in digests:
        assert mark == digest(shipped_file(name)), f"measure again what names {name}"


def test_readme_has_the_numbers_of_the_ladder() -> None:
    anchors = {anchor.player: anchor for anchor in load_ladder().anchors}
    row = r"^\| (`[^|]+) \|[^|]+\| ([\d, ]+) \| ([\d.]*) *\|"
    rows = re.findall(row, TEXTS["README.md"], re.MULTILINE)
    assert len(rows) == 4
    for names, elos, milliseconds in rows:
        players = [anchors[player] for player in re.findall("`(.+?)`", names)]
        assert [f"{player.elo:.0f}" for player in players] == elos.split(", ")
        assert not milliseconds or float(milliseconds) == float(f"{players[0].ms_a_move:.2g}")


def test_what_an_elo_means() -> None:
    """A player of 1,400 Elo scores against players of the ladder as Elo's formula says."""
    row = r"^\| `(.+?)` \| (\d+) \| ([\d.]+)% \|"
    rows = re.findall(row, TEXTS["docs/evaluation.md"], re.MULTILINE)
    assert len(rows) == 5
    for player, number, points in rows:
        assert int(number) == round(anchors_elo()[player])
        expected = 100 / (1 + 10 ** ((int(number) - 1400) / 400))
        assert float(points) == pytest.approx(expected, abs=0.5)


def test_rules_and_readme_name_every_ruleset() -> None:
    rules = TEXTS["bao_env/RULES.md"]
    for name in RULESETS:
        assert f"| `{name}` |" in TEXTS["README.md"]
        assert f"`{name}`" in rules or name == "zanzibar"


def test_rules_have_the_recorded_perft_numbers() -> None:
    rows = re.findall(r"^\| `(\w+)`[^|]*\|([\d,| ]+)\|$", TEXTS["bao_env/RULES.md"], re.MULTILINE)
    assert [name for name, _ in rows] == list(RULESETS)
    for name, numbers in rows:
        recorded = json.loads((ROOT / f"tests/recorded/numbers/{name}.json").read_text())["perft"]
        assert [int(number.replace(",", "")) for number in numbers.split("|")] == recorded[:8]
