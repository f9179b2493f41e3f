"""Distances on the WGS 84 ellipsoid: exact ones by geodesic, and chords that decide almost
every comparison cheaply.

The chord c between two points of the ellipsoid bounds their geodesic distance s. A geodesic's
curvature in space is its normal curvature, between 1/GREATEST_RADIUS and 1/LEAST_RADIUS, so by
Schur's comparison of arcs `2 R asin(c / 2R)` at the least radius is at least s, and at the
greatest radius at most s.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit
from pyproj import Geod

WGS84 = Geod(ellps="WGS84")
EQUATOR_RADIUS = 6378137.0
FLATTENING = 1.0 / 298.257223563
ECCENTRICITY_SQUARED = FLATTENING * (2.0 - FLATTENING)
LEAST_RADIUS = EQUATOR_RADIUS * (1.0 - FLATTENING) ** 2
GREATEST_RADIUS = EQUATOR_RADIUS / (1.0 - FLATTENING)
# Beyond this the sine bounds lose their strength and every undecided pair is measured.
_FAR = 9.0e6
# Metres: rounding of earth-centred coordinates (nanometres) and the slight twist of long
# geodesics, with room to spare.
_MARGIN, _TWIST = 1e-6, 1e-7

Floats = npt.NDArray[np.float64]


def distances(x0: Floats, y0: Floats, x1: Floats, y1: Floats) -> Floats:
    """Geodesic distances in metres between points given in degrees (longitude,
    latitude), element by element."""
    return np.asarray(WGS84.inv(x0, y0, x1, y1)[2], np.float64)


@njit(cache=True, nogil=True)
def earth_centred(longitude, latitude):  # type: ignore[no-untyped-def]
    """(X, Y, Z) in metres of a point on the ellipsoid given in degrees."""
    lon = np.radians(longitude)
    lat = np.radians(latitude)
    sine = np.sin(lat)
    normal = EQUATOR_RADIUS / np.sqrt(1.0 - ECCENTRICITY_SQUARED * sine * sine)
    across = normal * np.cos(lat)
    return across * np.cos(lon), across * np.sin(lon), normal * (1.0 - ECCENTRICITY_SQUARED) * sine


def chord_limits(radius: float) -> tuple[float, float]:
    """(near, far): squared chords; at most `near` the geodesic distance is at most `radius`
    metres, beyond `far` it is more.

    >>> near, far = chord_limits(10_000.0)
    >>> bool(near < 10_000.0**2 < far * 1.000001), bool(far - near < 1.0)
    (True, True)
    """
    reach = min(radius, _FAR)
    near = 2.0 * LEAST_RADIUS * np.sin(reach / (2.0 * LEAST_RADIUS)) * (1.0 - _TWIST * reach / _FAR) - _MARGIN
    far = 2.0 * EQUATOR_RADIUS + 1.0
    if radius <= _FAR:
        far = 2.0 * GREATEST_RADIUS * np.sin(radius / (2.0 * GREATEST_RADIUS)) * (1.0 + _TWIST * reach / _FAR) + _MARGIN
    return (near * near if near > 0.0 else -1.0), far * far


def circle_bounds(x: float, y: float, radius: float) -> tuple[float, float, float, float]:
    """(west, south, east, north) in degrees of a box that holds the geodesic circle; all longitudes
    when it meets the antimeridian."""
    reach = np.degrees(radius / (LEAST_RADIUS * 0.9999))
    south, north = max(y - reach, -90.0), min(y + reach, 90.0)
    if south <= -90.0 or north >= 90.0:
        return -180.0, south, 180.0, north
    # On the sphere of least radius a circle reaches asin(sin(r) / cos(lat)) to the side; one per
    # cent covers the ellipsoid.
    ratio = np.sin(np.radians(min(reach * 1.01, 90.0))) / np.cos(np.radians(max(abs(south), abs(north))))
    side = 180.0 if ratio >= 1.0 else np.degrees(np.arcsin(ratio))
    if x - side < -180.0 or x + side > 180.0:
        return -180.0, south, 180.0, north
    return x - side, south, x + side, north
