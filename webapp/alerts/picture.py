"""A still picture of one alert for messages: its regions, the tracks of its entities,
and the evidence, north up."""

from __future__ import annotations

import io
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from PIL import Image, ImageDraw

from webapp.alerts.evidence import evidence_of
from webapp.alerts.models import Alert
from webapp.queries.selectors import behind

WIDTH, HEIGHT, MARGIN, LEGEND = 560, 320, 28, 20
"""CSS pixels; drawn at twice the size."""
SCALE = 2
METRES_IN_A_DEGREE = 111_320.0
CORNERS = 64
PAPER, REGION, REGION_EDGE, EVIDENCE = "#f4f7f9", "#d5e6ee", "#0b6b8a", "#c4271b"
TRACKS = ("#0b6b8a", "#b35c00", "#5b4a9c", "#2f7d4f")
Point = tuple[float, float]


def picture_of(alert: Alert) -> bytes | None:
    """A PNG; None if the alert has no position."""
    items = evidence_of(alert)
    detection = items["detection"]
    events = [] if detection is None else detection["evidence"] or []
    evidence = [(one["x"], one["y"]) for one in events if one["x"] is not None and one["y"] is not None]
    lines = [(track["entity"], [(x, y) for _, x, y in track["points"]]) for track in items["tracks"]]
    geographic = alert.feed.crs == "geographic"
    rings = [ring for shape in behind(alert.query, alert.query_version)[1] for ring in _rings(shape, geographic)]
    shown = [*evidence, *(point for _, line in lines for point in line)]
    if not shown:
        return None
    return _drawn(_View.around(shown, geographic), rings, lines, evidence)


@dataclass(frozen=True)
class _View:
    """The pixel position of coordinates."""

    west: float
    north: float
    per_x: float
    per_y: float

    @classmethod
    def around(cls, points: Sequence[Point], geographic: bool) -> _View:
        """A view of all points with a margin, with equal scales in both directions."""
        xs, ys = [x for x, _ in points], [y for _, y in points]
        narrower = max(math.cos(math.radians((min(ys) + max(ys)) / 2)), 0.01) if geographic else 1.0
        least = 500 / METRES_IN_A_DEGREE if geographic else 1.0
        wide, high = max((max(xs) - min(xs)) * narrower, least), max(max(ys) - min(ys), least)
        per_y = min((WIDTH - 2 * MARGIN) / wide, (HEIGHT - LEGEND - 2 * MARGIN) / high)
        per_x = per_y * narrower
        west = (min(xs) + max(xs)) / 2 - WIDTH / 2 / per_x
        north = (min(ys) + max(ys)) / 2 + (HEIGHT - LEGEND) / 2 / per_y
        return cls(west, north, per_x, per_y)

    def place(self, point: Point) -> Point:
        return (point[0] - self.west) * self.per_x * SCALE, (self.north - point[1]) * self.per_y * SCALE


def _drawn(view: _View, rings: Iterable[list[Point]], lines: Sequence[tuple[str, list[Point]]], evidence: Iterable[Point]) -> bytes:
    image = Image.new("RGB", (WIDTH * SCALE, HEIGHT * SCALE), PAPER)
    draw = ImageDraw.Draw(image)
    for ring in rings:
        draw.polygon([view.place(point) for point in ring], fill=REGION, outline=REGION_EDGE, width=SCALE)
    for number, (entity, line) in enumerate(lines):
        colour = TRACKS[number % len(TRACKS)]
        places = [view.place(point) for point in line]
        if len(places) > 1:
            draw.line(places, fill=colour, width=2 * SCALE, joint="curve")
        _dot(draw, places[-1:], colour, 4)
        if number < len(TRACKS):
            draw.text((8 * SCALE + number * 130 * SCALE, (HEIGHT - LEGEND) * SCALE), entity[:18], fill=colour, font_size=12 * SCALE)
    _dot(draw, [view.place(point) for point in evidence], EVIDENCE, 5)
    written = io.BytesIO()
    image.save(written, "PNG", optimize=True)
    return written.getvalue()


def _dot(draw: ImageDraw.ImageDraw, places: Iterable[Point], colour: str, radius: float) -> None:
    for x, y in places:
        around = radius * SCALE
        draw.ellipse((x - around, y - around, x + around, y + around), fill=colour, outline=PAPER, width=SCALE)


def _rings(shape: dict[str, Any], geographic: bool) -> list[list[Point]]:
    """The outer rings of a region document; a circle as a polygon."""
    if "radius" in shape:
        (x, y), radius = shape["center"], shape["radius"] / (METRES_IN_A_DEGREE if geographic else 1)
        narrower = max(math.cos(math.radians(y)), 0.01) if geographic else 1.0
        turns = [2 * math.pi * i / CORNERS for i in range(CORNERS)]
        return [[(x + radius / narrower * math.cos(turn), y + radius * math.sin(turn)) for turn in turns]]
    polygons = [shape["coordinates"]] if shape["type"] == "Polygon" else shape["coordinates"]
    return [[(corner[0], corner[1]) for corner in polygon[0]] for polygon in polygons]
