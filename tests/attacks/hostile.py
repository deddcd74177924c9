"""Hostile data: texts and plain values with something wrong in them."""

from __future__ import annotations

import random
from typing import Any, Final

ALPHABET: Final = "0123456789,/ -+*<>:;=[]{}\"'.ABabLRSN\n\t\r\0\ufeff\u0664\u00b2\u2013\U0001f330"


def mutated(rng: random.Random, text: str, other: str) -> str:
    """A text after some random cuts, repeats and insertions, also of pieces of another one."""
    for _ in range(rng.choice((1, 1, 1, 2, 3, 10))):
        i = rng.randrange(len(text) + 1)
        j = min(len(text), i + rng.choice((0, 1, 1, 2, 5, 40)))
        k = rng.randrange(len(other) + 1)
        piece = rng.choice(
            (
                "",
                text[i:j] * 2,
                other[k : k + 20],
                rng.choice(ALPHABET),
                "".join(rng.choices(ALPHABET, k=5)),
                rng.choice("0-9[{/ ") * rng.choice((3, 30, 5000)),
            )
        )
        text = text[:i] + piece + text[j:]
    return text


HOSTILE: Final[tuple[Any, ...]] = (
    *(None, True, -1, 0, 2**63, 2**200, 1e308, float("nan"), "", "x" * 10_000, [], {}, [[]]),
    *([2**31], [65536] * 64, [10**9, 10**9], {"a": 1}, "mlp", "moves", "zanzibar", [1] * 8, [True]),
)


def replaced_somewhere(rng: random.Random, value: Any) -> Any:
    """Plain values with one of them replaced by a hostile one, or left out."""
    if isinstance(value, dict) and value and rng.random() < 0.9:
        key = rng.choice(list(value))
        rest = {k: v for k, v in value.items() if k != key}
        return rest if rng.random() < 0.1 else value | {key: replaced_somewhere(rng, value[key])}
    if isinstance(value, list) and value and rng.random() < 0.7:
        i = rng.randrange(len(value))
        return [*value[:i], replaced_somewhere(rng, value[i]), *value[i + 1 :]]
    return rng.choice(HOSTILE)
