"""Mutated files and documents, from a seeded, reproducible generator."""

from __future__ import annotations

import copy
import io
import json
import random
import zipfile
from typing import Any

TOKENS = (
    b"\x00", b"\xff\xfe", b"[" * 200, b"{" * 200, b"<" * 50, b"1e999", b"-0", b"NaN",
    b"9" * 400, b"<!DOCTYPE x>", b"&x;", b"<kml>", b"\n" * 500, b"," * 500,
    b"POLYGON((", b"\r\n", b"\xc3\x28", b"%s%n", b"../../", b"/etc/passwd", b"PK\x05\x06", b"\xff" * 8, b"\x00\x00\x00\x80", b"\x7f\xff\xff\xff",
)  # fmt: skip
VALUES: tuple[Any, ...] = (
    None, True, 0, -1, 1, 2**31, 2**63, -(2**70), 1e308, -1e-308, "", "\x00", "PT3M", "PT1E9S", "P99999999D", "a" * 5_000, "[" * 100, [], {}, [[]],
    [0, 0], {"region": "square"}, {"center": [0, 0], "radius": 1}, {"center": [1e308, 0], "radius": 1e308}, ["event", "=", "x"], "\ud800",
)  # fmt: skip
PIECES = (
    "(",
    ")",
    ",",
    ".",
    ":-",
    "\\+",
    "holdsAt(",
    "AND ",
    "OR ",
    ": ",
    "!",
    ";[5] ",
    "[0,5]",
    "happensAt(",
    "_",
    "X",
    "9" * 300,
    "%",
    "'",
    "/*",
    "=",
    "<",
    "A",
)


def mutated(data: bytes, others: list[bytes], chance: random.Random) -> bytes:
    """`data` with one to four changes; sometimes a part of another file of its format is
    inserted."""
    made = bytearray(data)
    for _ in range(chance.randint(1, 4)):
        at = chance.randrange(len(made) + 1)
        length = min(chance.choice((1, 2, 8, 60, 600)), len(made) - at)
        match chance.randrange(7):
            case 0 if length:
                made[at : at + length] = chance.randbytes(length)
            case 1 if at < len(made):
                made[at] ^= 1 << chance.randrange(8)
            case 2:
                del made[at : at + length]
            case 3:
                made[at:at] = chance.choice(TOKENS)
            case 4:
                made[at:at] = made[at : at + length] * chance.choice((1, 2, 20))
            case 5:
                other = chance.choice(others)
                begin = chance.randrange(len(other))
                made[at : at + length] = other[begin : begin + chance.randint(1, 400)]
            case _:
                if chance.random() < 0.2:
                    del made[at:]
    return bytes(made)


def mutated_archive(data: bytes, chance: random.Random) -> bytes:
    """A zip with one of its files changed, and correct checksums: an archive with wrong checksums
    is rarely unpacked."""
    written = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as archive, zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as made:
        files = {name: archive.read(name) for name in archive.namelist()}
        changed = chance.choice(sorted(files))
        for name, content in files.items():
            made.writestr(name, mutated(content, [*files.values()], chance) if name == changed else content)
    return written.getvalue()


def mutated_document(document: Any, others: list[Any], chance: random.Random) -> Any:
    """A JSON document with one to four nodes changed, dropped, repeated, nested, or
    inserted from another one."""
    made = copy.deepcopy(document)
    for _ in range(chance.randint(1, 4)):
        holder, key = chance.choice(list(_nodes(made)) or [(None, None)])
        if holder is None:
            break
        value = holder[key]
        match chance.randrange(7):
            case 0:
                holder[key] = copy.deepcopy(chance.choice(VALUES))
            case 1:
                del holder[key]
            case 2:
                other_holder, other_key = chance.choice(list(_nodes(chance.choice(others))))
                holder[key] = copy.deepcopy(other_holder[other_key])
            case 3 if isinstance(value, list):
                holder[key] = copy.deepcopy(value * chance.choice((2, 20, 200)))[:2_000]
            case 4:
                for _ in range(chance.choice((1, 5, 60))):
                    value = [value] if chance.random() < 0.5 else {chance.choice(("and", "region", "where", "x")): value}
                holder[key] = value
            case 5 if isinstance(value, str) and value:
                holder[key] = _text(value, chance)
            case 6 if isinstance(holder, dict):
                holder[chance.choice(("", "$feature", "region", "where", "window", "x" * 300))] = holder.pop(key)
    return made if len(json.dumps(made)) < 2_000_000 else document


def _text(text: str, chance: random.Random) -> str:
    at, length = chance.randrange(len(text)), chance.choice((0, 1, 5, 80))
    repeated = text[at : at + length] * chance.choice((1, 2, 50)) if chance.random() < 0.4 else chance.choice(PIECES)
    return text[:at] + repeated + text[at + length * chance.randrange(2) :]


def _nodes(document: Any) -> Any:
    """(holder, key) of every node below `document`."""
    for key in list(document) if isinstance(document, dict) else range(len(document)) if isinstance(document, list) else ():
        yield document, key
        yield from _nodes(document[key])
