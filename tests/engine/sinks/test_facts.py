"""Keys of facts must not change, or stored answers would not be found again."""

from __future__ import annotations

import json
from hashlib import blake2b
from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from engine.model.changes import ANSWERS
from engine.sinks.answer_rows import answer_text
from engine.sinks.facts import facts_of
from engine.sinks.keys import natural_key

TEXTS = st.text(max_size=8)
TIMES = st.integers(-(2**63), 2**63 - 1)
ITEMS = st.fixed_dictionaries(
    {"variable": st.none() | TEXTS, "entity": st.none() | TEXTS, "t": TIMES, "x": st.none() | st.floats(allow_nan=False, allow_infinity=False)}
    | {"y": st.none() | st.floats(-90, 90), "seq": st.none() | st.integers(0, 2**40)}
)
FACTS = st.fixed_dictionaries(
    {"query": st.integers(0, 2**40).map(str), "version": st.integers(1, 99), "kind": st.sampled_from(["in", "stayed_in", "near", 'a "b"'])}
    | {"entities": st.lists(TEXTS, max_size=3), "value": st.none() | TEXTS, "score": st.none() | st.floats(-1e300, 1e300), "start": TIMES}
    | {"end": st.none() | TIMES, "evidence": st.none() | st.lists(ITEMS, max_size=3), "weight": st.sampled_from([1, -1])}
)


@given(TEXTS, st.integers(1, 99), TEXTS, st.lists(TEXTS, max_size=3), st.none() | TEXTS, TIMES, st.none() | TIMES, st.lists(st.none() | TIMES))
def test_the_key_of_a_fact_made_of_events_is_the_hash_of_its_compact_json(
    query: str, version: int, kind: str, entities: list[str], value: str | None, start: int, end: int | None, seqs: list[int | None]
) -> None:
    written = json.dumps([query, version, f"x{kind}", entities, value, start, end, seqs], separators=(",", ":"))
    assert natural_key(query, version, f"x{kind}", entities, value, start, end, seqs) == blake2b(written.encode(), digest_size=16).digest()  # type: ignore[arg-type]


@given(FACTS)
def test_an_answer_serialises_to_json_with_all_fields_of_a_page(row: dict[str, Any]) -> None:
    (fact,) = facts_of(pa.Table.from_pylist([row], schema=ANSWERS))
    text = answer_text(fact, backfill=False, detected_at=7)
    assert text.isascii()
    read = json.loads(text)

    def stored(text: str | None) -> str | None:
        return None if text is None else text.replace("\x00", "\ufffd")

    assert read == {
        "id": fact.key.hex(),
        "query": int(row["query"]),
        "version": row["version"],
        "kind": row["kind"],
        "entities": [stored(name) for name in row["entities"]],
        "value": stored(row["value"]) if row["score"] is None else row["score"],
        "start": row["start"],
        "end": row["end"],
        "cut": False,
        "weight": row["weight"],
        "backfill": False,
        "detected_at": 7,
        "evidence": None if row["evidence"] is None else [one | {n: stored(one[n]) for n in ("variable", "entity")} for one in row["evidence"]],
    }
