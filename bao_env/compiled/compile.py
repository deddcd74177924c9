"""Compile kernel functions with numba.

A kernel function is plain Python on integers and arrays: no objects, exceptions or growing lists.
Its annotations say the types in compiled code. Python gets a uint64 that it returns as an int.
Only numba's overloads have none: numba compares their parameters, with annotations, to those of the
functions that they return.
``NUMBA_DISABLE_JIT=1`` runs it uncompiled, for example in a debugger.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
import numpy as np

from bao_env.compiled.cache import keep
from bao_env.compiled.interrupts import defers_signals
from bao_env.compiled.notice import announce

F = TypeVar("F", bound=Callable[..., Any])

if numba.config.DISABLE_JIT:  # type: ignore[attr-defined]
    np.seterr(over="ignore")  # the kernel computes modulo 2^64; NumPy would warn


def jit(function: F, **options: Any) -> F:
    """Compile ``function`` with numba on its first call, cache it on disk, and release the GIL.

    The function must not make an array; its caller passes the arrays that it fills. So numba need
    not count the references to arrays, which would take two atomic instructions in each function
    that receives one. ``_nrt``, numba's runtime, does that counting (:func:`jit_with_array`).

    A function that Python calls must not return an array, a NamedTuple or a tuple with arrays.
    Numba runs Python code to make one, and Ctrl-C at that moment crashes the process or raises
    SystemError.

    ``options`` are passed on to numba.
    """
    options = {
        "nogil": True,
        "_nrt": False,
        **options,
        "error_model": "numpy",
        "no_cfunc_wrapper": True,
    }
    compiled = numba.njit(**options)(function)
    if compiled is not function:  # numba returns it as it is with NUMBA_DISABLE_JIT
        announce(function)
        keep(compiled)
        compiled.compile = defers_signals(compiled.compile)
    return cast(F, compiled)


def jit_brief(function: F) -> F:
    """Compile a function as :func:`jit` does, but keep the GIL: for calls with one position.

    A thread that releases the GIL every few microseconds takes it back before any other thread has
    woken up, and keeps the others waiting for a long time.
    """
    return jit(function, nogil=False)


def jit_with_array(function: F) -> F:
    """Compile a function as :func:`jit` does, but let it make an array, which it may not return."""
    return jit(function, _nrt=True)


def jit_inner(function: F, **options: Any) -> F:
    """Compile a function as :func:`jit` does, for functions that only compiled code calls.

    Such a function compiles faster because it gets no Python wrapper. A call from Python raises
    TypeError.
    """
    compiled = jit(function, no_cpython_wrapper=True, **options)

    def refuse(*args: Any, **kwargs: Any) -> None:
        raise TypeError(
            f"{function.__name__}() has no Python wrapper: call it from a function compiled by @jit"
        )

    if compiled is not function:
        # Without these, numba would call the missing wrapper and crash.
        compiled._insert = lambda *args, **kwargs: None  # type: ignore[attr-defined]
        compiled._compile_for_args = refuse  # type: ignore[attr-defined]
    return compiled


def jit_inline(function: F) -> F:
    """Compile a function as :func:`jit_inner` does, for functions that a hot loop must inline.

    Without inlining, a loop that calls small functions would not vectorise, and a call with many
    array arguments would copy the arrays' descriptors.
    """
    return jit_inner(function, forceinline=True)


def jit_merged(function: F) -> F:
    """Compile a function within its caller, for a large function with a single caller.

    Compiled by itself, it would be optimised twice: alone, and again as a part of its caller. A
    call from Python compiles it as :func:`jit` does.
    """
    return jit(function, inline="always")
