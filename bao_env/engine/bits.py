"""Compute with bits and bytes of 64-bit words, in forms that compile to single instructions.

A row of eight pits is a word of eight bytes, pit 0 lowest. Counts stay below 128, so one addition
tests all eight bytes at once, with the answer in the top bit of each byte. Everything is uint64:
numba would turn a mix of uint64 and int64 into floats.
"""

from __future__ import annotations

import numpy as np

from bao_env.compiled.compile import jit_inline

U = np.uint64

ZERO = U(0)
ONE = U(1)
FULL = U(0xFFFFFFFFFFFFFFFF)
BYTE = U(0xFF)
ONES = U(0x0101010101010101)
TOPS = U(0x8080808080808080)

# Masks of the sums and tests below.
_LOW7 = U(0x7F7F7F7F7F7F7F7F)
_LOW6E = U(0x7E7E7E7E7E7E7E7E)
_GATHER = U(0x0102040810204080)
_DIAGONAL = U(0x8040201008040201)
_M1 = U(0x5555555555555555)
_M2 = U(0x3333333333333333)
_M4 = U(0x0F0F0F0F0F0F0F0F)
_M8 = U(0x00FF00FF00FF00FF)
_M16 = U(0x0000FFFF0000FFFF)
# Shifts, unsigned like everything else.
_S1 = U(1)
_S2 = U(2)
_S3 = U(3)
_S4 = U(4)
_S7 = U(7)
_S8 = U(8)
_S13 = U(13)
_S16 = U(16)
_S17 = U(17)
_S32 = U(32)
_S56 = U(56)


@jit_inline
def popcount(x: U) -> U:
    """Return the number of set bits (LLVM compiles this form to one instruction)."""
    x = x - ((x >> _S1) & _M1)
    x = (x & _M2) + ((x >> _S2) & _M2)
    x = (x + (x >> _S4)) & _M4
    return (x * ONES) >> _S56


@jit_inline
def trailing_zeros(x: U) -> U:
    """Return the index of the lowest set bit of a non-zero word."""
    return popcount((x - ONE) & ~x)


@jit_inline
def select_bit(x: U, k: U) -> U:
    """Return the index of the k-th (from 0) set bit of x; k must be below popcount(x).

    There is no branch: running sums of bit counts find first the byte, then the bit in it.
    """
    sums = x - ((x >> _S1) & _M1)
    sums = (sums & _M2) + ((sums >> _S2) & _M2)
    sums = ((sums + (sums >> _S4)) & _M4) * ONES  # byte i: set bits in bytes 0..i
    before = (((k * ONES) | TOPS) - sums) & TOPS  # bytes that end at or before bit k
    offset = popcount(before) << _S3
    k -= ((sums << _S8) >> offset) & BYTE
    bits = ((((x >> offset) & BYTE) * ONES) & _DIAGONAL) + _LOW7
    sums = ((bits >> _S7) & ONES) * ONES  # byte i: set bits 0..i of that byte
    before = (((k * ONES) | TOPS) - sums) & TOPS
    return offset + popcount(before)


@jit_inline
def byteswap(x: U) -> U:
    """Reverse the bytes of a word, which puts a front row in the opponent's order of pits."""
    x = ((x >> _S8) & _M8) | ((x & _M8) << _S8)
    x = ((x >> _S16) & _M16) | ((x & _M16) << _S16)
    return (x >> _S32) | (x << _S32)


@jit_inline
def nonzero(x: U) -> U:
    """Return eight bits, bit i set where byte i is at least 1."""
    return ((((x + _LOW7) & TOPS) >> _S7) * _GATHER) >> _S56


@jit_inline
def at_least_2(x: U) -> U:
    """Return eight bits, bit i set where byte i is at least 2."""
    return ((((x + _LOW6E) & TOPS) >> _S7) * _GATHER) >> _S56


@jit_inline
def spread_bits(x: U) -> U:
    """Return eight bytes, byte i = bit i of x; x must be below 256."""
    return ((((x * ONES) & _DIAGONAL) + _LOW7) >> _S7) & ONES


@jit_inline
def xorshift(x: U) -> U:
    """Return the next state of a 64-bit xorshift generator (Marsaglia 2003); x must not be zero."""
    x ^= x << _S13
    x ^= x >> _S7
    return x ^ (x << _S17)


@jit_inline
def sum_of_bytes(x: U) -> U:
    """Return the sum of the eight bytes of a word; the sum must be below 256."""
    return (x * ONES) >> _S56


@jit_inline
def byte(x: U, i: U) -> U:
    """Return byte i (0..7) of a word."""
    return (x >> (i << _S3)) & BYTE
