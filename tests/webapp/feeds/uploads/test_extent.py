"""The initial map view of a feed made from a file."""

from __future__ import annotations

import math

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.model.feed import Crs
from webapp.feeds.uploads.extent import MAP_PX, Extent

LONGITUDES, LATITUDES = st.floats(-180, 180), st.floats(-80, 80)


def rows(*places: tuple[float | None, float | None]) -> pa.Table:
    x, y = zip(*places, strict=True)
    return pa.table({"x": pa.array(x, pa.float64()), "y": pa.array(y, pa.float64())})


def pixels(x: float, y: float, zoom: float) -> tuple[float, float]:
    """Mercator's projection at a zoom, as web maps define it."""
    size = 256 * 2**zoom
    return (x + 180) / 360 * size, (0.5 - math.log(math.tan(math.pi / 4 + math.radians(y) / 2)) / (2 * math.pi)) * size


@given(st.lists(st.tuples(LONGITUDES, LATITUDES), min_size=1, max_size=20))
def test_the_map_view_covers_all_positions(places: list[tuple[float, float]]) -> None:
    extent = Extent()
    for place in places:
        extent.add(rows(place, (None, None)))
    view = extent.view(Crs.GEOGRAPHIC)
    assert view is not None
    across = [pixels(*place, view["zoom"]) for place in places]
    for axis in (0, 1):
        seen = [one[axis] for one in across]
        assert max(seen) - min(seen) <= MAP_PX[axis] * 1.01


def test_a_receiver_without_a_fix_does_not_move_the_map() -> None:
    extent = Extent()
    extent.add(rows(*[(11.5 + 0.001 * n, 48.1) for n in range(999)], (0.0, 0.0)))
    view = extent.view(Crs.GEOGRAPHIC)
    assert view is not None
    assert view["center"] == pytest.approx([12.0, 48.1], abs=0.02)
    assert view["zoom"] >= 9


def test_planar_data_are_shown_in_their_units_and_no_positions_give_no_view() -> None:
    extent = Extent()
    extent.add(rows((None, None)))
    assert extent.view(Crs.PLANAR) is None
    extent.add(rows((0.0, 0.0), (1800.0, 90.0)))
    assert extent.view(Crs.PLANAR) == {"center": [900.0, 45.0], "zoom": -1.0}
