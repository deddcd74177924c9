"""Keep signals, such as that of Ctrl-C, out of the compiler.

Python runs the handler of a signal between any two of its instructions, and LLVM calls Python now
and then. A KeyboardInterrupt in such a call is ignored, ends in an error of numba's, or leaves LLVM
in a state that crashes the process.
"""

from __future__ import annotations

import functools
import signal
import threading
from collections.abc import Callable
from typing import Any, TypeVar, cast

F = TypeVar("F", bound=Callable[..., Any])

_handlers: dict[int, Callable[..., Any]] = {}
"""The program's handlers of the signals that are kept out; empty while nothing is compiled."""
_waiting: list[tuple[int, Any]] = []
"""The arguments of the handlers that have not been called yet."""


def defers_signals(compile_function: F) -> F:
    """Make a function that compiles call the handlers of signals only when it has ended.

    A handler may raise KeyboardInterrupt then. If a function compiles others first, the signal
    waits only for the one that is being compiled.
    """

    @functools.wraps(compile_function)
    def compile_and_handle(*args: Any) -> Any:
        if threading.current_thread() is not threading.main_thread():  # it gets no signals
            return compile_function(*args)
        is_outermost = not _handlers
        try:
            if is_outermost:
                _take_signals()
            return compile_function(*args)
        finally:
            handlers = dict(_handlers)
            if is_outermost:
                _give_signals_back()
            noted = list(_waiting)
            _waiting.clear()
            for number, frame in noted:
                handlers[number](number, frame)

    return cast(F, compile_and_handle)


def _take_signals() -> None:
    """Replace the handlers of the signals by one that only notes them."""
    for number in signal.valid_signals():
        handler = signal.getsignal(number)
        if callable(handler):  # else it is no Python function
            _handlers[number] = handler
            signal.signal(number, _note)


def _note(number: int, frame: Any) -> None:
    """Note a signal, to call its handler later."""
    _waiting.append((number, frame))


def _give_signals_back() -> None:
    """Set the program's handlers again, but for those that it has changed meanwhile."""
    for number, handler in _handlers.items():
        if signal.getsignal(number) is _note:
            signal.signal(number, handler)
    _handlers.clear()
