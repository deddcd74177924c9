"""Suggest the name that a caller may have meant, for error messages."""

from __future__ import annotations

import os
from collections.abc import Iterable
from difflib import get_close_matches


def did_you_mean(word: str, names: Iterable[str], tail: str = "") -> str:
    """Return `` (did you mean 'NAME'?)`` for the path that ends with a word, else for the most
    similar name; empty if there is none.

    Args:
        word: what the caller wrote.
        names: the names that exist.
        tail: what to add to the name that is suggested.
    """
    names = list(names)
    close = [name for name in names if word and name.endswith(f"{os.sep}{word}")]
    close = close or get_close_matches(word, names, n=1)
    return f" (did you mean {close[0] + tail!r}?)" if close else ""
