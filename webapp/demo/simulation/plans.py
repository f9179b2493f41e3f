"""Floor plans of the demo's halls, drawn as PNG pictures; metres from the lower left corner."""

from __future__ import annotations

import struct
import zlib
from enum import Enum

import numpy as np

PIXELS_PER_M = 24


class Colour(Enum):
    """What a plan is drawn in (red, green, blue)."""

    FLOOR = (246, 247, 249)
    LINE = (236, 238, 242)
    WALL = (74, 84, 102)
    DOOR = (120, 190, 140)
    EDGE = (164, 174, 190)
    BLOCK = (222, 228, 236)
    READER = (88, 116, 190)


class Drawing:
    """A plan of `width` by `height` metres, PIXELS_PER_M pixels a metre."""

    def __init__(self, width: float, height: float) -> None:
        self.width, self.height = width, height
        self.image = np.full((round(height * PIXELS_PER_M), round(width * PIXELS_PER_M), 3), Colour.FLOOR.value, np.uint8)

    def fill(self, x0: float, y0: float, x1: float, y1: float, colour: Colour) -> None:
        rows = slice(round((self.height - y1) * PIXELS_PER_M), round((self.height - y0) * PIXELS_PER_M))
        self.image[rows, round(x0 * PIXELS_PER_M) : round(x1 * PIXELS_PER_M)] = colour.value

    def grid(self) -> None:
        """A fine line at each metre."""
        for metre in range(1, int(self.width)):
            self.fill(metre, 0, metre + 0.04, self.height, Colour.LINE)
        for metre in range(1, int(self.height)):
            self.fill(0, metre, self.width, metre + 0.04, Colour.LINE)

    def block(self, x0: float, y0: float, x1: float, y1: float) -> None:
        """A stand, a shelf: an edge of 12 cm about it."""
        self.fill(x0, y0, x1, y1, Colour.EDGE)
        self.fill(x0 + 0.12, y0 + 0.12, x1 - 0.12, y1 - 0.12, Colour.BLOCK)

    def walls(self, thick: float = 0.3) -> None:
        for edge in (0.0, self.height - thick):
            self.fill(0, edge, self.width, edge + thick, Colour.WALL)
        for edge in (0.0, self.width - thick):
            self.fill(edge, 0, edge + thick, self.height, Colour.WALL)

    def png(self) -> bytes:
        return png(self.image)


def png(image: np.ndarray[tuple[int, ...], np.dtype[np.uint8]]) -> bytes:
    """An RGB picture of shape (height, width, 3) as a PNG file."""
    height, width, _ = image.shape

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    # Each line of a PNG begins with the number of its filter; 0 is none.
    lines = np.concatenate([np.zeros((height, 1), np.uint8), image.reshape(height, width * 3)], axis=1)
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(lines.tobytes(), 9)) + chunk(b"IEND", b"")
