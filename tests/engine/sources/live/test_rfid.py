"""Tag reports of RFID readers: the examples of GS1's standard, and
messages as readers send them."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.sources.formats import InvalidLine
from engine.sources.live.payloads import records_in
from engine.sources.live.rfid import epc_parts

# EPC Tag Data Standard, the examples of its section on binary encodings (appendix E.3).
PUBLISHED = [
    ("3074257BF7194E4000001A85", {"gtin": "80614141123458", "serial": "6789"}),
    ("3674257BF6B7A659B2C2BF1000000000000000000000000000", {"gtin": "70614141123451", "serial": "32a/b"}),
    ("3674257BF6B7A659B2C2BF10000000000000000000000000000000"[:52], {"gtin": "70614141123451", "serial": "32a/b"}),
    ("3174257BF4499602D2000000", {"sscc": "106141412345678908"}),
]


@pytest.mark.parametrize(("code", "parts"), PUBLISHED)
def test_the_published_examples_are_decoded(code: str, parts: dict[str, str]) -> None:
    assert epc_parts(bytes.fromhex(code)) == parts


@pytest.mark.parametrize("code", ["", "30", "E28011606000020528F904FA", "307C257BF7194E4000001A85", "30" + "FF" * 11])
def test_an_invalid_code_is_not_decoded(code: str) -> None:
    assert epc_parts(bytes.fromhex(code)) == {}


@given(st.integers(0, 6), st.data())
def test_every_epc_partition_round_trips(partition: int, data: Any) -> None:
    company_digits, company_bits = 12 - partition, (40, 37, 34, 30, 27, 24, 20)[partition]
    company = data.draw(st.integers(0, 10**company_digits - 1))
    item = data.draw(st.integers(0, 10 ** (13 - company_digits) - 1))
    serial = data.draw(st.integers(0, 2**38 - 1))
    value = 0x30 << 88 | 1 << 85 | partition << 82 | company << (82 - company_bits) | item << 38 | serial
    parts = epc_parts(value.to_bytes(12, "big"))
    text = f"{item:0{13 - company_digits}}"
    assert parts["gtin"][:13] == text[0] + f"{company:0{company_digits}}" + text[1:] and parts["serial"] == str(serial)
    assert sum(int(digit) * (3, 1)[place % 2] for place, digit in enumerate(parts["gtin"])) % 10 == 0


def test_a_message_of_a_reader_becomes_a_record_for_each_tag() -> None:
    code = bytes.fromhex(PUBLISHED[0][0])
    tag = {"antennaPort": 1, "antennaName": "Dock 1", "peakRssiCdbm": -6150}
    events = [
        {
            "timestamp": "2026-01-02T03:04:05.678Z",
            "hostname": "r700",
            "eventType": "tagInventory",
            "tagInventoryEvent": {**tag, "epcHex": code.hex()},
        },
        {"timestamp": "2026-01-02T03:04:06Z", "tagInventoryEvent": {**tag, "epc": base64.urlsafe_b64encode(code).decode().rstrip("=")}},
        {"timestamp": "2026-01-02T03:04:07Z", "inventoryStatusEvent": {"inventoryStatus": "running"}},
        {"timestamp": "2026-01-02T03:04:08Z", "tagInventoryEvent": {"epcHex": "no code"}},
    ]
    first, second, broken = list(records_in(json.dumps(events).encode(), {}, form="rfid"))
    assert not isinstance(first, InvalidLine) and not isinstance(second, InvalidLine)
    assert {key: value for key, value in first.items() if key != "received"} == {
        "epc": PUBLISHED[0][0],
        "gtin": "80614141123458",
        "serial": "6789",
        "reader": "r700",
        "antenna": "Dock 1",
        "rssi": -61.5,
        "time": "2026-01-02T03:04:05.678Z",
    }
    assert second["epc"] == first["epc"] and isinstance(broken, InvalidLine) and "epcHex" in broken.problem
