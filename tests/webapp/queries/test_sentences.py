"""Sentences that read a query back."""

from typing import Any

import pytest

from engine.model.feed import Crs, Feed, TimeUnit
from webapp.queries.sentences import sentence_of

MS = Feed("f", Crs.PLANAR, TimeUnit.MS)
TICKS = Feed("f", Crs.PLANAR, TimeUnit.TICKS)
PORT = {"region": {"region": "port A"}}


@pytest.mark.parametrize(
    ("specification", "feed", "sentence"),
    [
        ({"family": "border", **PORT}, MS, "Tells when something enters port A or leaves port A."),
        ({"family": "border", **PORT, "segments": True}, MS, "Tells when something enters port A or leaves port A, also between two reports."),
        (
            {"family": "border", **PORT, "where": [["speed", ">", 3], ["kind", "in", ["bus", "car"]]]},
            MS,
            "Tells when something whose speed is above 3 and kind is one of bus or car enters port A or leaves port A.",
        ),
        (
            {"family": "border", "ranges": {"price": [10, 20.5]}},
            MS,
            "Tells when something comes to have price from 10 to below 20.5 or no longer has price from 10 to below 20.5.",
        ),
        (
            {"family": "border", "region": {"center": [1, 2], "radius": 30}},
            MS,
            "Tells when something enters the circle of radius 30 around (1, 2) or leaves the circle of radius 30 around (1, 2).",
        ),
        (
            {"family": "transition", **PORT, "within": "PT3M", "types": ["stayed_in"]},
            MS,
            "Tells when something enters port A and stays for more than 3 minutes.",
        ),
        (
            {"family": "transition", **PORT, "within": 50, "types": ["passed", "returned", "stayed_out"]},
            TICKS,
            "Tells when something enters port A and leaves again within 50 ticks, leaves port A and comes back within 50 ticks "
            "or leaves port A and stays away for more than 50 ticks.",
        ),
        (
            {"family": "transition", **PORT, "within": 90061000, "types": ["stayed_in"]},
            MS,
            "Tells when something enters port A and stays for more than 1 day 1 hour 1 minute 1 second.",
        ),
        (
            {"family": "transition", **PORT, "within": 1500, "types": ["stayed_in"]},
            MS,
            "Tells when something enters port A and stays for more than 1500 ms.",
        ),
        ({"family": "unheard-of"}, MS, None),
        ("nothing", MS, None),
    ],
)
def test_a_query_is_read_back(specification: Any, feed: Feed, sentence: str | None) -> None:
    assert sentence_of(specification, feed=feed) == sentence
