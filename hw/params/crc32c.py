"""CRC32C as linear algebra over GF(2): what the RTL wires up.

CRC32C is the Castagnoli CRC: polynomial 0x1EDC6F41, bits in and out reflected, initial and final value all ones
(RFC 3720, appendix B.4). Between its initial and final inversion it is linear, so a whole beat is one constant matrix,
padding can be taken back with the inverse matrix, and crc(A + B) follows from crc(A), crc(B) and len(B): it is crc(A)
times the matrix of as many zero bytes as B has, plus crc(B), where the inversions cancel.

A matrix is the tuple of its columns, and a column is an integer: bit i is row i.
"""

from functools import cache
from typing import TypeAlias

Matrix: TypeAlias = tuple[int, ...]

WIDTH = 32
POLYNOMIAL = 0x82F63B78
"""Reflected: bit 31 is the coefficient of x^0."""
ONES = (1 << WIDTH) - 1
"""Initial state, and what the final state is inverted with."""


def apply(matrix: Matrix, vector: int) -> int:
    """Return matrix times vector."""
    result = 0
    for column in matrix:
        if vector & 1:
            result ^= column
        vector >>= 1
    return result


def multiply(left: Matrix, right: Matrix) -> Matrix:
    """Return the matrix that applies `right` first, then `left`."""
    return tuple(apply(left, column) for column in right)


def rows(matrix: Matrix) -> tuple[int, ...]:
    """Return for each of the 32 state bits the mask of the input bits whose parity it is."""
    return tuple(sum((column >> row & 1) << bit for bit, column in enumerate(matrix)) for row in range(WIDTH))


def _step(state: int) -> int:
    """Return the state after one zero bit."""
    return state >> 1 ^ (POLYNOMIAL if state & 1 else 0)


def _step_back(state: int) -> int:
    """Return the state before one zero bit: only a step that added the polynomial leaves bit 31 set."""
    return (state ^ POLYNOMIAL) << 1 | 1 if state >> WIDTH - 1 else state << 1


@cache
def zeros(count: int) -> Matrix:
    """Return the matrix that moves the state past `count` zero bytes; a negative count takes them back."""
    if abs(count) > 1:
        half = zeros(count // 2)
        square = multiply(half, half)
        return multiply(zeros(1), square) if count % 2 else square
    matrix: Matrix = tuple(1 << bit for bit in range(WIDTH))
    for _ in range(8 * abs(count)):
        matrix = tuple(_step(column) if count > 0 else _step_back(column) for column in matrix)
    return matrix


@cache
def data(count: int) -> Matrix:
    """Return the matrix of `count` data bytes (8 * count columns, the first byte in the low bits) on a zero state."""
    columns = [POLYNOMIAL]
    while len(columns) < 8 * count:
        columns.append(_step(columns[-1]))
    return tuple(reversed(columns))
