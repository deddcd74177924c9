"""Play bao in plain Python by the lines of the protocol alone, without bao_env and the rules.

bao match greedy "pipe:python training/examples/engine_bot.py"
"""

import random
import sys


def answer(line: str) -> None:
    """Write a line and flush it: otherwise it stays in a buffer, and the host waits."""
    print(line, flush=True)


def choose(position: str, legal: list[int]) -> int:
    """Return one of the legal actions: here, any that starts in the front row."""
    front = [action for action in legal if action // 4 < 8]
    return random.choice(front or legal)


position, legal = "", list[int]()
for line in sys.stdin:
    word, _, arguments = line.strip().partition(" ")
    if word == "seed":
        random.seed(int(arguments))
    elif word == "isready":
        answer("name Front row")
        answer("version 1")
        answer("ready")
    elif word == "position":
        position = arguments
    elif word == "legal":
        legal = [int(action) for action in arguments.split()]
    elif word == "go":
        answer(f"move {choose(position, legal)}")
    elif word == "quit":
        break
