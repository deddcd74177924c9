"""Refuse requests: an exception, and a check of the values' types."""

from __future__ import annotations

from pydantic import ConfigDict, validate_call

check_types = validate_call(config=ConfigDict(strict=True))
"""Decorate a function to check the types of its arguments, which may come from a request.

A wrong type raises :class:`pydantic.ValidationError`.
"""


class Refused(Exception):
    """Raised if a request cannot be served; the message says why, and what would work.

    Args:
        message: the message for the person at the board.
        status: the HTTP status, 4xx or 5xx.
    """

    def __init__(self, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.message = message
        self.status = status
