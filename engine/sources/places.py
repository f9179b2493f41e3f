"""Places in the columns of files: two columns of numbers, or one with both
coordinates as text, WKT or WKB."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import shapely

Bools = npt.NDArray[np.bool_]
Numbers = npt.NDArray[np.float64]
Places = tuple[Numbers, Numbers, Bools]
"""x, y (NaN without a value), and where there is something else than coordinates."""
NUMBERS, LAT_LON, LON_LAT, WKT, WKB = "numbers", "lat_lon", "lon_lat", "wkt", "wkb"
SCALED: Mapping[str, float] = {"e7": 1e7, "e6": 1e6}
"""Integers: this many are a degree."""
IN_ONE: Mapping[str, str] = {
    LAT_LON: "place as latitude, longitude",
    LON_LAT: "place as longitude, latitude",
    WKT: "point as WKT",
    WKB: "point as WKB",
}
"""Forms in which one column holds the whole place, and how they are called."""
FORMS = (NUMBERS, *SCALED, *IN_ONE)
LONGEST_WKB = 41
"""Bytes of a point with four ordinates and the number of its system."""
LONGEST_WKT = 200
_DIGITS = r"[+-]?[0-9]{{1,20}}(?:[{0}][0-9]*)?(?:[eE][+-]?[0-9]{{1,3}})?"
_PAIR = r"^(?:geo:)?[\[(]?\s*(?P<first>{digits})\s*°?{divided}(?P<second>{digits})\s*°?(?:{divided}{digits})?\s*[\])]?$"
_PAIRS = {
    ".": _PAIR.format(digits=_DIGITS.format("."), divided=r"(?:\s*[,;/|]\s*|\s+)"),
    ",": _PAIR.format(digits=_DIGITS.format(".,"), divided=r"(?:\s*[;/|]\s*|\s+|,\s+)"),
}
_POINT = r"^(?i)(?:SRID=[0-9]{1,6};)?\s*POINT\s*(?:Z|M|ZM)?\s*(?:\(|EMPTY)"
_SRID = r"^(?i)SRID=[0-9]{1,6};"


def texts_of(column: pa.Array) -> pa.Array:
    """The column as trimmed text; hexadecimal for bytes."""
    if is_bytes(column.type):
        return pa.array([None if one is None else one.hex() for one in column.to_pylist()], pa.string())
    return pc.utf8_trim_whitespace(column.cast(pa.string()))


def is_bytes(kind: pa.DataType) -> bool:
    """Whether values are bytes."""
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind))


def places_in(column: pa.Array, form: str, decimal: str = ".") -> Places:
    """The places of a column whose `form` is one of IN_ONE."""
    if form in (LAT_LON, LON_LAT):
        return _pairs(column, form, decimal)
    is_present, shapes = _shapes(column, form)
    points = shapely.get_type_id(shapes) == shapely.GeometryType.POINT
    shapes[~points | shapely.is_empty(shapes)] = None
    return shapely.get_x(shapes), shapely.get_y(shapes), is_present & ~points


def srid_of(column: pa.Array, form: str) -> int:
    """The number of the coordinate reference system that all points of a column
    name; 0 where they name none."""
    if form == WKT:
        groups = pc.extract_regex(texts_of(column), r"^(?i)SRID=(?P<srid>[0-9]{1,6});").drop_null()
        numbers = {int(one["srid"]) for one in groups.to_pylist()}
    elif form == WKB:
        numbers = set(shapely.get_srid(_shapes(column, form)[1]).tolist()) - {-1}
    else:
        numbers = set()
    return numbers.pop() if len(numbers) == 1 else 0


def form_of(column: pa.Array) -> tuple[str, float]:
    """The form of IN_ONE that fits most values, and the share that it fits; of pairs only where
    both have decimals and are degrees."""
    if len(column) == 0 or not (is_bytes(column.type) or pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        return NUMBERS, 0.0
    if is_bytes(column.type):
        return WKB, _share(places_in(column, WKB))
    texts = texts_of(column)
    if pc.any(pc.match_substring_regex(texts, _POINT)).as_py():
        return WKT, _share(places_in(texts, WKT))
    if pc.all(pc.match_substring_regex(texts, r"^0[01][0-9a-fA-F]{40,80}$")).as_py():
        return WKB, _share(places_in(texts, WKB))
    for decimal in (".", ","):
        first, second, _ = places_in(texts, LON_LAT, decimal)
        finite = np.isfinite(first)
        if not finite.any():
            continue
        first, second = first[finite], second[finite]
        share = float(np.mean(finite & _bools(pc.match_substring_regex(texts, r"[0-9][.,][0-9].*[0-9][.,][0-9]"))))
        if np.abs(first).max() <= 90 and np.abs(second).max() <= 180:
            return LAT_LON, share
        if np.abs(first).max() <= 180 and np.abs(second).max() <= 90:
            return LON_LAT, share
    return NUMBERS, 0.0


def is_angular(column: pa.Array) -> bool:
    """Whether texts are degrees and minutes such as 52°30'N."""
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        return False
    return bool(pc.any(pc.match_substring_regex(column, r"^\s*[NSEW]?\s*[0-9]{1,3}\s*°\s*[0-9]{1,2}([.,][0-9]+)?\s*['′’]")).as_py())


def _share(places: Places) -> float:
    x, _, wrong = places
    return float(np.mean(np.isfinite(x))) if np.isfinite(x).sum() > wrong.sum() else 0.0


def _pairs(column: pa.Array, form: str, decimal: str) -> Places:
    texts = pc.utf8_trim_whitespace(column.cast(pa.string()))
    groups = pc.extract_regex(texts, _PAIRS[decimal])
    first, second = (_numbers(pc.struct_field(groups, name), groups) for name in ("first", "second"))
    wrong = _bools(pc.not_equal(pc.fill_null(texts, ""), "")) & (np.isnan(first) | np.isnan(second))
    return (first, second, wrong) if form == LON_LAT else (second, first, wrong)


def _numbers(texts: pa.Array, groups: pa.Array) -> Numbers:
    plain = pc.if_else(pc.is_valid(groups), pc.replace_substring(texts, ",", "."), pa.scalar(None, pa.string()))
    values = np.array(plain.cast(pa.float64()).to_numpy(zero_copy_only=False), np.float64)
    values[np.isinf(values)] = np.nan
    return values


def _shapes(column: pa.Array, form: str) -> tuple[Bools, npt.NDArray[np.object_]]:
    """(Where there is a value, points): longer texts than any point are not parsed."""
    raw = is_bytes(column.type)
    texts = column if raw else texts_of(column)
    lengths = pc.binary_length(texts)
    is_present = _bools(pc.greater(lengths, 0))
    longest = (LONGEST_WKB if raw else 2 * LONGEST_WKB) if form == WKB else LONGEST_WKT
    short = _bools(pc.less_equal(lengths, longest))
    if form == WKT:
        short &= _bools(pc.match_substring_regex(texts, _POINT))
        texts = pc.replace_substring_regex(texts, _SRID, "")
    values = np.array(texts.to_numpy(zero_copy_only=False), object)
    values[~(is_present & short)] = None
    return is_present, (shapely.from_wkt if form == WKT else shapely.from_wkb)(values, on_invalid="ignore")


def _bools(array: pa.Array) -> Bools:
    return np.asarray(pc.fill_null(array, False).to_numpy(zero_copy_only=False), np.bool_)
