"""Tag reports of RFID readers, as Impinj's IoT device interface writes them, with the
codes on the tags taken apart.

Of the Electronic Product Codes those that name things by a serial number are decoded: SGTIN-96,
SGTIN-198 and SSCC-96. A tag with another code, or with a number that is not a code, keeps its
hexadecimal digits as its only name.

References: GS1 EPC Tag Data Standard 1.13, sections 14.5.1, 14.5.2 and tables 14-2, 14-3, 14-5.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator, Mapping
from typing import Any

from engine.model.messages import Message
from engine.sources.formats import InvalidLine, excerpt
from engine.sources.formats.json_text import records_of

SGTIN_96, SGTIN_198, SSCC_96 = 0x30, 0x36, 0x31
_COMPANY = ((40, 12), (37, 11), (34, 10), (30, 9), (27, 8), (24, 7), (20, 6))
"""By partition: bits and digits of the company's prefix; item or serial reference have the rest."""
_ITEM_BITS, _ITEM_DIGITS = 44, 13
_SHIPMENT_BITS, _SHIPMENT_DIGITS = 58, 17


def records_of_reader(document: Any) -> Iterator[Mapping[str, Any] | InvalidLine]:
    """A record for each tag report of a message; reports about the reader itself are left out."""
    for event in records_of(document):
        if isinstance(event, InvalidLine):
            yield event
        elif "tagInventoryEvent" in event:
            yield _report(event)


def _report(event: Mapping[str, Any]) -> Mapping[str, Any] | InvalidLine:
    tag = event["tagInventoryEvent"]
    code = _code(tag) if isinstance(tag, Mapping) else None
    if code is None:
        return InvalidLine(0, Message("the tag report has no code in epcHex (hexadecimal) or epc (base64)"), excerpt(event))
    return {
        "epc": code.hex().upper(),
        **epc_parts(code),
        "reader": event.get("hostname"),
        "antenna": tag.get("antennaName", tag.get("antennaPort")),
        "rssi": _dbm(tag.get("peakRssiCdbm")),
        "time": event.get("timestamp"),
    }


def _dbm(hundredths: Any) -> float | None:
    """A power given in hundredths of a dBm; null if it is not a number."""
    try:
        return float(hundredths) / 100 if isinstance(hundredths, int | float) else None
    except OverflowError:
        # An integer in JSON may have any number of digits.
        return None


def _code(tag: Mapping[str, Any]) -> bytes | None:
    digits, letters = tag.get("epcHex"), tag.get("epc")
    try:
        if isinstance(digits, str) and digits:
            return bytes.fromhex(digits)
        if isinstance(letters, str) and letters:
            return base64.b64decode(letters + "=" * (-len(letters) % 4), altchars=b"-_", validate=True)
    except (ValueError, binascii.Error):
        pass
    return None


def epc_parts(code: bytes) -> dict[str, str]:
    """The parts of a code: `gtin` (14 digits) and `serial` of a thing, `sscc` (18 digits) of a
    shipment; empty for any other code.

    >>> epc_parts(bytes.fromhex("3074257BF7194E4000001A85"))
    {'gtin': '80614141123458', 'serial': '6789'}
    """
    scheme = code[0] if code else None
    value, bits = int.from_bytes(code, "big"), 8 * len(code)
    partition = value >> (bits - 14) & 7 if bits >= 96 else 7
    if partition == 7:
        return {}
    if scheme == SSCC_96 and bits == 96:
        company, reference = _halves(value >> 24, partition, _SHIPMENT_BITS, _SHIPMENT_DIGITS)
        return {"sscc": _with_check_digit(reference[:1] + company + reference[1:])} if company else {}
    # 198 bits are filled up to bytes, or to words of 16 bits as on the tag.
    if (scheme, bits) not in ((SGTIN_96, 96), (SGTIN_198, 200), (SGTIN_198, 208)):
        return {}
    company, item = _halves(value >> (bits - 58), partition, _ITEM_BITS, _ITEM_DIGITS)
    serial = str(value & ((1 << 38) - 1)) if scheme == SGTIN_96 else _letters(value >> (bits - 198) & ((1 << 140) - 1))
    return {"gtin": _with_check_digit(item[:1] + company + item[1:]), "serial": serial} if company else {}


def _halves(value: int, partition: int, bits: int, digits: int) -> tuple[str, str]:
    """The company's prefix and the reference after it, as digits; two empty texts
    if one has too many digits."""
    company_bits, company_digits = _COMPANY[partition]
    rest_bits = bits - company_bits
    company, rest = value >> rest_bits & ((1 << company_bits) - 1), value & ((1 << rest_bits) - 1)
    if company >= 10**company_digits or rest >= 10 ** (digits - company_digits):
        return "", ""
    return f"{company:0{company_digits}}", f"{rest:0{digits - company_digits}}"


def _letters(value: int) -> str:
    """Twenty characters of seven bits, up to the first invalid one."""
    codes = [value >> shift & 0x7F for shift in range(133, -1, -7)]
    return "".join(map(chr, codes[: codes.index(0)] if 0 in codes else codes))


def _with_check_digit(digits: str) -> str:
    total = sum(int(digit) * (3 if place % 2 == 0 else 1) for place, digit in enumerate(reversed(digits)))
    return f"{digits}{-total % 10}"
