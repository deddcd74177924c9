"""Play bao with a language model, on any server that speaks OpenAI's protocol.

export OPENAI_BASE_URL=http://127.0.0.1:8000/v1 OPENAI_MODEL=NAME OPENAI_API_KEY=KEY
bao match "pipe:300s:python training/examples/llm_bot.py" greedy
"""

import hashlib
import json
import os
import sys
import urllib.error
import urllib.request
from pathlib import Path

from bao_env import Board, Ruleset, action_to_move, get_ruleset
from bao_env.rules_in_words import rules_in_words

URL, MODEL = os.environ.get("OPENAI_BASE_URL", ""), os.environ.get("OPENAI_MODEL", "")
KEY = os.environ.get("OPENAI_API_KEY", "none").strip()
PAGE_HASH = hashlib.sha256(Path(__file__).read_bytes()).hexdigest()[:8]  # changes with what it asks
FORM = """\
On the board, [6] is a house that is still owned, (3) a hole that takasia bars, <4> a capture \
whose direction is still to be chosen. Think as long as you like, then end with one of the legal \
moves, in this form:
Move: A7L"""


def answer(line: str) -> None:
    """Write a line and flush it: otherwise it stays in a buffer, and the host waits."""
    print(line, flush=True)


def ask(system: str, question: str, seconds: float) -> str:
    """Return the model's text; it is empty if the answer was cut off.

    Raises:
        ValueError: the server refuses the request; the message quotes it.
    """
    messages = {"role": "system", "content": system}, {"role": "user", "content": question}
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {KEY}"}
    body = json.dumps({"model": MODEL, "messages": messages}).encode()
    request = urllib.request.Request(f"{URL.rstrip('/')}/chat/completions", body, headers)
    try:
        with urllib.request.urlopen(request, timeout=seconds) as response:
            content = response.read()
    except urllib.error.HTTPError as refusal:
        raise ValueError(f"{refusal}: {refusal.read(200).decode(errors='replace')}") from None
    try:
        choice = json.loads(content)["choices"][0]
    except (ValueError, LookupError, TypeError):  # some servers send their errors with status 200
        raise ValueError(f"the server answered {content[:200].decode(errors='replace')}") from None
    return (choice["message"]["content"] or "") if choice["finish_reason"] == "stop" else ""


def read_move(text: str, moves: dict[str, int]) -> int | str:
    """Return the action of the last line that begins with ``Move:``, else ``none``."""
    lines = [line for line in text.splitlines() if line.startswith("Move:")]
    return moves.get(lines[-1].removeprefix("Move:").strip(), "none") if lines else "none"


def play() -> None:
    """Answer the lines of the host."""
    for line in sys.stdin:
        word, _, arguments = line.strip().partition(" ")
        if word == "ruleset":
            rules = (
                Ruleset.from_dict(json.loads(arguments))
                if arguments[0] == "{"
                else get_ruleset(arguments)
            )
        elif word == "isready":
            if not (URL and MODEL):
                raise ValueError("set OPENAI_BASE_URL and OPENAI_MODEL")
            Board(rules)  # compile the rules before the clock runs
            answer(f"name {MODEL}\nversion {MODEL} {PAGE_HASH}\nready")
        elif word == "position":
            board = Board.from_text(arguments, rules)
        elif word == "legal":
            moves = {action_to_move(int(action)): int(action) for action in arguments.split()}
        elif word == "go":
            question = f"{board}\nYour legal moves: {' '.join(moves)}"
            text = ask(
                f"{rules_in_words(rules)}\n\n{FORM}", question, int(arguments.split()[1]) / 1000
            )
            move = read_move(text, moves)
            if move == "none":
                print(f"{MODEL} named no legal move: ...{text[-200:]!a}", file=sys.stderr)
            answer(f"move {move}")
        elif word == "quit":
            break


try:
    play()
except Exception as fault:  # noqa: BLE001 (the match stops, and the host says why)
    answer(f"error {type(fault).__name__}: {str(fault)[:300]!a}")
    sys.exit(1)
