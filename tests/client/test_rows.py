"""The Python client's errors about invalid rows, before it sends anything."""

from __future__ import annotations

from typing import Any

import pytest
from vedette import Vedette
from vedette.feeds import Writer

FEED = Vedette("http://127.0.0.1:1", "none", retry_for=0.0).feed("yard")
ROW = {"entity": "a", "t": 1}


@pytest.mark.parametrize(
    ("rows", "remedy"),
    [
        (ROW, r"not one dict: send\(\[row\]\)"),
        ("a,1", "not one str"),
        ([("a", 1)], "a row is a dict .* not tuple"),
        ([ROW, "a,2"], "a row is a dict .* not str"),
    ],
)
def test_what_is_no_list_of_rows_is_refused_with_the_remedy(rows: Any, remedy: str) -> None:
    with pytest.raises(TypeError, match=remedy):
        FEED.send(rows)


def test_a_writer_takes_rows_alone() -> None:
    with pytest.raises(TypeError, match="a row is a dict"):
        Writer(FEED).put([ROW])  # type: ignore[arg-type]
