"""Texts in blocks of whole lines, in bounded memory."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import BinaryIO

import numpy as np
import numpy.typing as npt

from engine.model.messages import Message

BLOCK_BYTES = 1 << 20
"""Text is parsed in pieces of about this size, and those that hold something odd in smaller ones:
few lines lose their speed by it."""
PART_BYTES = 1 << 16
CHUNK_BYTES = 32 << 20
LINE_BYTES = 1_000_000
"""A longer line is malformed, and only its beginning is kept in memory."""
TOO_LONG = Message("longer than {most} bytes", most=LINE_BYTES)
UTF8_MARK = b"\xef\xbb\xbf"


def blocks(stream: BinaryIO, size: int = BLOCK_BYTES) -> Iterator[bytes]:
    """The stream in pieces that end with a line; the very last may lack its newline."""
    rest, data = b"", stream.read(size)
    while following := stream.read(size):
        rest += data
        if cut := rest.rfind(b"\n") + 1:
            yield rest[:cut]
            rest = rest[cut:]
        else:
            rest = rest[: LINE_BYTES + 1]
        data = following
    if rest or data:
        yield rest + data


def blocks_of_lines(stream: BinaryIO, lines: int) -> Iterator[bytes]:
    """The stream in pieces of exactly `lines` lines, of fewer where they are
    very long, and at the end."""
    held: list[bytes] = []
    size = 0
    for line in _lines(stream):
        held.append(line)
        size += len(line)
        if len(held) == lines or size >= CHUNK_BYTES:
            yield b"".join(held)
            held, size = [], 0
    if held:
        yield b"".join(held)


def _lines(stream: BinaryIO) -> Iterator[bytes]:
    while line := stream.readline(LINE_BYTES + 2):
        if len(line) > LINE_BYTES + 1 and not line.endswith(b"\n"):
            while (rest := stream.readline(LINE_BYTES)) and not rest.endswith(b"\n"):
                pass
            line += b"\n"
        yield line


def parts_of(block: bytes, begins: npt.NDArray[np.int64]) -> Iterator[bytes]:
    """The block cut at some of the places where records begin, into parts of about PART_BYTES."""
    offsets = np.searchsorted(begins, np.arange(PART_BYTES, len(block), PART_BYTES))
    cuts = {0, len(block), *begins[offsets[offsets < len(begins)]].tolist()}
    for begin, end in pairwise(sorted(cuts)):
        yield block[begin:end]


def has_longer_line(block: bytes, most: int = LINE_BYTES) -> bool:
    """Whether a line of the block has more than `most` bytes."""
    begin = 0
    while begin + most < len(block):
        end = block.rfind(b"\n", begin, begin + most + 1)
        if end < 0:
            return True
        begin = end + 1
    return False


def is_utf8(data: bytes) -> bool:
    """Whether the bytes are UTF-8."""
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True
