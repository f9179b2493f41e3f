"""The facts in static AIS messages (5, 19, 21, 24) about their sender: name, type, size, call sign,
IMO number (ITU-R M.1371-5, annex 8)."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any

MOST_IMO = 9_999_999
HAZARDOUS = {1: "category A", 2: "category B", 3: "category C", 4: "category D"}
_GROUPS = {2: "wing in ground", 4: "high-speed craft", 6: "passenger", 7: "cargo", 8: "tanker", 9: "other"}
_TYPES = {
    30: "fishing", 31: "towing", 32: "towing, long or wide", 33: "dredging or underwater operations", 34: "diving operations",
    35: "military operations", 36: "sailing", 37: "pleasure craft", 50: "pilot vessel", 51: "search and rescue", 52: "tug", 53: "port tender",
    54: "anti-pollution equipment", 55: "law enforcement", 58: "medical transport", 59: "noncombatant ship",
}  # fmt: skip


def described(message: Mapping[str, Any]) -> dict[str, str]:
    """The facts of one decoded message as texts, lengths in metres; missing ones are left out."""
    record = {"name": text_of(message.get("shipname") or message.get("name")), "callsign": text_of(message.get("callsign"))}
    imo, code = _whole(message.get("imo")), _whole(message.get("ship_type"))
    if 0 < imo <= MOST_IMO:
        record["imo"] = str(imo)
    if code:
        record |= {"ship_type": str(code), "type": type_of(code)}
    for size, ends in (("length", ("to_bow", "to_stern")), ("width", ("to_port", "to_starboard"))):
        # An antenna at the very bow is 0 m from it: only zeros at both ends mean that it is
        # unknown.
        record[size] = str(sum(_whole(message.get(end)) for end in ends) or "")
    return {name: value for name, value in record.items() if value}


def type_of(code: int) -> str:
    """The words for a type of ship; empty for an undefined number."""
    if code in _TYPES:
        return _TYPES[code]
    group = _GROUPS.get(code // 10)
    if group is None or code > 99:
        return ""
    return f"{group}, {HAZARDOUS[code % 10]}" if code % 10 in HAZARDOUS else group


def text_of(value: Any) -> str:
    """A text without padding characters."""
    return value.partition("@")[0].strip() if isinstance(value, str) else ""


def _whole(value: Any) -> int:
    value = value.value if isinstance(value, Enum) else value
    return int(value) if isinstance(value, int | float) and not isinstance(value, bool) else 0
