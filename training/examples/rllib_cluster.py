"""PPO of RLlib on a Ray cluster of two nodes, which are started here as two processes.

python training/examples/rllib_cluster.py

On machines of your own, run ``ray start --head`` on one and ``ray start --address=HOST:6379`` on
the others instead; the training below stays as it is.
"""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

# Ray admits only processes with the cluster's token and reads it on import; the nodes and their
# workers inherit it. On your own cluster it is already set.
os.environ.setdefault("RAY_AUTH_MODE", "token")
os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))

import ray
from measure import OBSERVATION, report
from ray.rllib.callbacks.callbacks import RLlibCallback
from rllib_vector import player, settings, train

from bao_env.adapters.rllib import against

NODES = 2


def free_port() -> int:
    """Return a free port of this machine."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def cluster() -> Iterator[str]:
    """Start a cluster of :data:`NODES` nodes with one core each, and yield its address.

    The cluster ends with the block.
    """
    program = shutil.which("ray", path=str(Path(sys.executable).parent)) or "ray"
    address = f"127.0.0.1:{free_port()}"
    common = [program, "start", "--num-cpus=1", "--node-ip-address=127.0.0.1", "--block"]
    folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
    head = ["--head", f"--port={address.partition(':')[2]}", "--include-dashboard=false"]
    head += [f"--temp-dir={folder.name}"]  # not Ray's usual one: nobody else finds this cluster
    nodes: list[subprocess.Popen[bytes]] = []
    try:
        for number in range(NODES):
            words = [*common, *head] if number == 0 else [*common, f"--address={address}"]
            # A session of its own, so that the node's child processes end with it.
            nodes.append(subprocess.Popen(words, stdout=subprocess.DEVNULL, start_new_session=True))
            wait_for(address, number + 1, nodes)
        yield address
    finally:
        ray.shutdown()
        for node in reversed(nodes):
            node.terminate()
            try:
                node.wait(30)
            except subprocess.TimeoutExpired:
                os.killpg(node.pid, signal.SIGKILL)
        folder.cleanup()


def wait_for(address: str, count: int, nodes: list[subprocess.Popen[bytes]]) -> None:
    """Connect and wait until ``count`` nodes are alive.

    Raises:
        RuntimeError: a node has ended, or they are not all alive after a minute.
    """
    deadline = time.monotonic() + 60.0
    while time.monotonic() < deadline:
        if any(node.poll() is not None for node in nodes):
            raise RuntimeError("a node of the cluster could not be started; see its messages above")
        if not ray.is_initialized():
            try:
                ray.init(address, logging_level="ERROR", log_to_driver=False)
            except ConnectionError:
                time.sleep(1.0)
                continue
        if sum(node["Alive"] for node in ray.nodes()) == count:
            return
        time.sleep(0.5)
    raise RuntimeError(f"the cluster did not reach {count} nodes within a minute")


class CountSteps(RLlibCallback):
    """Count the steps that each env runner samples."""

    def on_sample_end(self, *, env_runner: Any, samples: list[Any], **_: Any) -> None:
        """See RLlib's ``RLlibCallback``."""
        steps = sum(len(episode) for episode in samples)
        env_runner.steps_sampled = getattr(env_runner, "steps_sampled", 0) + steps


def where_and_how_many(env_runner: Any) -> tuple[str, int]:
    """Return an env runner's node, and the number of steps that it has sampled."""
    node = ray.get_runtime_context().get_node_id()
    return node, getattr(env_runner, "steps_sampled", 0)


def main() -> None:
    """Train for a few minutes with an env runner on each node, then play."""
    with cluster() as address:
        print(f"a Ray cluster of {NODES} nodes at {address}", flush=True)
        config = (
            against(settings(), "greedy", games=64, observation=OBSERVATION)
            .env_runners(num_env_runners=NODES, num_cpus_per_env_runner=1)
            .callbacks(CountSteps)
        )
        algorithm = config.build_algo()
        seconds = train(algorithm)
        runners = algorithm.env_runner_group
        sampled = runners.foreach_env_runner(where_and_how_many, local_env_runner=False)
        for node, steps in sampled:
            print(f"node {node[:8]} sampled {steps:,} steps", flush=True)
        if len({node for node, steps in sampled if steps}) != NODES:
            sys.exit(f"not every node has sampled: {sampled}")
        choose = player(algorithm.get_module())
        algorithm.stop()
    report("ray", "PPO, against greedy, a Ray cluster of two nodes", seconds, choose)


if __name__ == "__main__":
    main()
