"""Recordings of readers as feeds, and patterns over them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from engine.complex_events.pattern_text import translate

Document = dict[str, Any]
MINUTE = 60_000
FORMS = [
    "A : B", "A :[0,{d}] B", "A : B : C", "A AND B", "A AND B AND C", "A ;[{d}] B", "(A OR B) : C", "A : !B : C", "A : !B :[0,{d}] C", "A : !B[{d}]",
    "(A OR C) : !B[{d}]", "(A AND B) : !C[{d}]", "(A : !C[{d}]) AND B", "A : (B AND C)", "A ;[{d}] (B : C)", "(A : B) OR (B : A)", "A : !(B : C) : A",
]  # fmt: skip


@dataclass(frozen=True)
class Readings:
    """A file, its columns under our names, attributes, primitives, the first row of a dense part,
    and a span in which some of them come together."""

    file: str
    columns: dict[str, str]
    attributes: dict[str, str]
    primitives: dict[str, list[list[Any]]]
    first: int
    span: int

    @property
    def feed(self) -> Document:
        return {"name": "readers", "crs": "planar", "time": "ms", "lateness": 0, "dedupe": False, "columns": self.attributes}

    def rows(self, data: Path, count: int) -> pa.Table:
        """This many rows of the dense part, in order of time."""
        table = pq.read_table(data / self.file).sort_by([("ts", "ascending")]).slice(self.first, count)
        named = {ours: table.column(theirs) for ours, theirs in self.columns.items()} | {column: table.column(column) for column in self.attributes}
        named["entity"] = named["entity"].cast(pa.string())
        return pa.table(named)

    def documents(self, forms: Sequence[str] = FORMS) -> list[Document]:
        """A query of each form, named by its number; every third is for single entities."""
        found = []
        for number, form in enumerate(forms):
            document: Document = {"family": "composite", "version": 1, "name": str(number), "pattern": form.format(d=self.span)}
            document |= {"within": 3 * self.span, "per": "entity" if number % 3 == 0 else None}
            found.append(document | {"primitives": {one: {"where": where} for one, where in self.primitives.items()}})
        return found


def as_trees(documents: Sequence[Document]) -> list[Document]:
    """Patterns in the form of the oracle."""
    return [{**one, "pattern": translate(one["pattern"]).tree} for one in documents]


READINGS = {
    "tags at readers": Readings(
        "rfid_readers_orfid/detections.parquet", {"entity": "tag", "t": "ts"}, {"reader": "string", "dur_ms": "int"},
        {"A": [["reader", "=", "upstream"]], "B": [["reader", "=", "downstream"]], "C": [["dur_ms", ">", 200]]}, 10_671, 360 * MINUTE,
    ),
    "badges that meet": Readings(
        "rfid_contacts_sociopatterns/hospital_2010.parquet", {"entity": "id1", "t": "ts"}, {"group1": "string", "group2": "string"},
        {"A": [["group1", "=", "NUR"]], "B": [["group1", "=", "MED"]], "C": [["group2", "=", "ADM"]]}, 0, 2 * MINUTE,
    ),
    "a wearable at antennas": Readings(
        "rfid_activity_uci/reads.parquet", {"entity": "trial", "t": "ts"}, {"antenna": "int", "label": "int"},
        {"A": [["antenna", "=", 1]], "B": [["antenna", "=", 3]], "C": [["antenna", "in", [2, 4]]]}, 0, 3_000,
    ),
}  # fmt: skip
