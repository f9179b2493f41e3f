"""Named arrays as bytes: how states are kept."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

Arrays = Mapping[str, npt.NDArray[Any]]


def pack_arrays(arrays: Arrays) -> bytes:
    """All arrays in one byte string.

    >>> unpack_arrays(pack_arrays({"a": np.arange(3)}))["a"].tolist()
    [0, 1, 2]
    """
    with io.BytesIO() as file:
        np.savez(file, allow_pickle=False, **arrays)
        return file.getvalue()


def unpack_arrays(data: bytes) -> dict[str, npt.NDArray[Any]]:
    """Inverse of `pack_arrays`."""
    with np.load(io.BytesIO(data), allow_pickle=False) as arrays:
        return dict(arrays)
