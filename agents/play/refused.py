"""The exception that refuses a request."""

from __future__ import annotations


class Refused(Exception):
    """A request that cannot be served; the message says why, and what would work.

    Args:
        message: for the person at the board.
        status: the HTTP status, 4xx or 5xx.
    """

    def __init__(self, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.message = message
        self.status = status
