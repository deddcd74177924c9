"""The order of the files: each imports only from those above it."""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).parent.parent
ORDER = [
    "bao_env.engine.compile",
    "bao_env.engine.bits",
    "bao_env.engine.layout",
    "bao_env.engine.ruleset",
    "bao_env.engine.position",
    "bao_env.engine.action",
    "bao_env.engine.kernel",
    "bao_env.engine.successors",
    "bao_env.engine.batch",
    "bao_env.rule_files",
    "bao_env.observation",
    "bao_env.bots",
    "bao_env.game",
    "bao_env.notation",
    "bao_env.move_text",
    "bao_env.transcript",
    "bao_env.drawing",
    "bao_env.render",
    "bao_env.raster",
    "bao_env.trace",
    "bao_env.board",
    "bao_env.episode",
    "bao_env.episodes",
    "bao_env.aec",
    "bao_env.bao_v0",
    "bao_env.single",
    "bao_env.vector",
    "bao_env",
    "bao_env.notation.__main__",
    "bao_env.perft",
    "bao_env.statistics",
    "bao_env.bench_peers",
    "bao_env.bench",
    "bao_env.adapters.sb3",
    "bao_env.adapters.torchrl",
    "bao_env.adapters.rllib",
    "bao_env.adapters.open_spiel",
    "agents.base",
    "agents.threads",
    "agents.evaluation",
    "agents.features",
    "agents.network",
    "agents.inference",
    "agents.rows",
    "agents.guide",
    "agents.transposition",
    "agents.alphabeta",
    "agents.mcts",
    "agents.checkpoint",
    "agents.options",
    "agents.forest",
    "agents.gumbel",
    "agents.policy",
    "agents.registry",
    "agents",
    "agents.elo",
    "agents.openings",
    "agents.ratings",
    "agents.arena",
    "agents.play.refused",
    "agents.play.rule_texts",
    "agents.play.geometry",
    "agents.play.sessions",
    "agents.play.roster",
    "agents.play.game",
    "agents.play.network_hints",
    "agents.play.analysis",
    "agents.play.watch",
    "agents.play.requests",
    "agents.play.server",
    "agents.play.__main__",
    "agents.play.picture",
    "training.config",
    "training.distributed",
    "training.loss",
    "training.memory",
    "training.metrics",
    "training.learner",
    "training.worker",
    "training.selfplay",
    "training.searchplay",
    "training.trainer",
    "training.ppo",
    "training.gumbel",
    "training.train",
    "training.evaluate",
    "training.report",
    "training.pools",
    "training.tournament",
    "training.curve",
    "training.bench",
    "training.scaling",
    "training.fit_evaluation",
    "agents.bench",
    "training.tactics",
    "training.examples.measure",
    "training.examples.cleanrl_vector",
    "training.examples.sb3_single",
    "training.examples.sb3_vector",
    "training.examples.torchrl_aec",
    "training.examples.torchrl_vector",
    "training.examples.skrl_vector",
    "training.examples.tianshou_aec",
    "training.examples.open_spiel_game",
    "training.examples.agilerl_vector",
    "training.examples.rllib_vector",
    "training.examples.rllib_aec",
    "training.examples.rllib_cluster",
    "training.examples.check",
]
LATE = {("agents.registry", "agents")}  # inside a function, to keep torch away from the bots


def module_name(path: Path) -> str:
    parts = list(path.relative_to(ROOT).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found & set(ORDER)


def sources() -> dict[str, Path]:
    folders = [ROOT / name for name in ("bao_env", "agents", "training")]
    paths = [path for folder in folders for path in sorted(folder.rglob("*.py"))]
    return {module_name(path): path for path in paths}


def test_every_file_has_its_place() -> None:
    # Packages whose __init__ imports nothing.
    hollow = {
        "bao_env.engine",
        "bao_env.adapters",
        "agents.play",
        "training",
        "training.examples",
    }
    assert set(sources()) - hollow == set(ORDER)


def test_imports_point_upward() -> None:
    for name, path in sources().items():
        for other in imports(path):
            if name in ORDER and other != name and (name, other) not in LATE:
                assert ORDER.index(other) < ORDER.index(name), f"{name} imports {other}"


def test_the_engine_is_numpy_and_numba_alone() -> None:
    allowed = {"numpy", "numba", "bao_env"}
    standard = set(__import__("sys").stdlib_module_names)
    for path in (ROOT / "bao_env" / "engine").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom):
                names = [node.module or ""]
            assert {n.split(".")[0] for n in names} <= allowed | standard, path
