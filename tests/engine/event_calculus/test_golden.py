"""The programs of fixtures/programs give RTEC's own results: every fluent equal, none extra."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

from fixtures.programs import build
from tests.engine.event_calculus.recordings import answers, feed_of, golden, query_of, shared_segment, stream, windows

pytestmark = pytest.mark.data

stream = cache(stream)
shared_segment = cache(shared_segment)


def caviar_name(kind: str, entities: Any, value: str) -> tuple[str, str, str, str]:
    """Fluent, arguments, value and threshold in the form of the golden files."""
    fluent, _, threshold = kind.partition("_") if kind.startswith("close") else (kind, "", "")
    return fluent, ";".join(entities), value, threshold


def end_text(end: int | None) -> str:
    return "inf" if end is None else str(end)


@pytest.mark.parametrize(("partitions", "distributed"), [(1, False), (3, False), (3, True)])
@pytest.mark.parametrize(("variant", "count"), [("rtec_2025", 520), ("rtec_2025_allpairs", 932), ("rtec_v1", 517), ("rtec_v1_allpairs", 932)])
def test_caviar_single_window(variant: str, count: int, partitions: int, distributed: bool) -> None:
    found = answers(query_of("caviar", variant, distributed=distributed), feed_of("caviar"), stream("caviar", "sde.csv.gz"), partitions=partitions)
    got = {(*caviar_name(kind, entities, value), str(start), end_text(end)) for kind, entities, value, start, end in found if shared_segment(start)}
    want = {tuple(row[name] for name in ("fluent", "args", "value", "threshold", "start", "end")) for row in golden("caviar", variant)}
    assert len(want) == count
    assert got == want


@pytest.mark.parametrize(("variant", "count"), [("rtec_2025_windows_w10000_s10000", 519), ("rtec_2025_windows_w100000_s50000", 689)])
def test_caviar_windows(variant: str, count: int) -> None:
    found = windows(query_of("caviar", variant), feed_of("caviar"), stream("caviar", "sde.csv.gz"), batch_rows=20_000)
    got = {
        (str(query_time), *caviar_name(kind, entities, value), str(start), str(end))
        for query_time, kind, entities, value, start, end in found
        if shared_segment(query_time) and not (kind == "close_34" and value == "false")
    }
    want = {tuple(row[name] for name in ("query_time", "fluent", "args", "value", "threshold", "start", "end")) for row in golden("caviar", variant)}
    assert len(want) == count
    assert got == want


@pytest.mark.parametrize(("partitions", "distributed"), [(1, False), (3, False), (3, True)])
def test_maritime_single_window(partitions: int, distributed: bool) -> None:
    found = answers(
        query_of("maritime", "rtec_2025", distributed=distributed), feed_of("maritime"), stream("maritime", "sde.csv.gz"), partitions=partitions
    )
    got = {(kind, ";".join(entities), value, str(start), end_text(end)) for kind, entities, value, start, end in found if int(entities[0]) % 2}
    want = {tuple(row[name] for name in ("fluent", "args", "value", "start", "end")) for row in golden("maritime", "rtec_2025")}
    assert len(want) == 2911
    assert got == want


@pytest.mark.parametrize(("partitions", "distributed"), [(1, False), (3, False), (3, True)])
def test_maritime_events_of_drtec(partitions: int, distributed: bool) -> None:
    rows = stream("maritime", "sde_aminess.csv.gz")
    found = answers(query_of("maritime", "aminess_rtec_2025", distributed=distributed), feed_of("maritime"), rows, partitions=partitions)
    events = ("illegalShipping", "fastApproach")
    got = {
        (kind, entities[0], value or "", str(start), "" if kind in events else end_text(end))
        for kind, entities, value, start, end in found
        if int(entities[0]) % 2
    }
    want = {tuple(row[name] for name in ("name", "vessel", "value", "start", "end")) for row in golden("maritime", "aminess_rtec_2025")}
    assert len(want) == 142
    assert got == want


@pytest.mark.parametrize(
    ("variant", "by", "count"), [("rtec_2025_windows_w7200_s3600", None, 8656), ("rtec_2025_windows_w7200_s3600_delayed", "t_arrival", 8581)]
)
@pytest.mark.parametrize("batch_rows", [None, 7_000])
def test_maritime_windows(variant: str, by: str | None, count: int, batch_rows: int | None) -> None:
    found = windows(query_of("maritime", variant), feed_of("maritime"), stream("maritime", "sde.csv.gz", by=by), batch_rows=batch_rows)
    got = {(str(q), kind, ";".join(entities), value, str(start), str(end)) for q, kind, entities, value, start, end in found if int(entities[0]) % 2}
    want = {tuple(row[name] for name in ("query_time", "fluent", "args", "value", "start", "end")) for row in golden("maritime", variant)}
    assert len(want) == count
    assert got == want


@pytest.mark.parametrize(("folder", "variant"), [("caviar", "rtec_2025_windows_w100000_s50000"), ("maritime", "rtec_2025_windows_w7200_s3600")])
def test_batches_and_partitions_do_not_change_the_answer(folder: str, variant: str) -> None:
    query, feed, rows = query_of(folder, variant), feed_of(folder), stream(folder, "sde.csv.gz")
    whole = answers(query, feed, rows)
    assert answers(query, feed, rows, batch_rows=9_001) == whole
    assert answers(query, feed, rows, batch_rows=30_000, partitions=3) == whole
    assert answers(query_of(folder, variant, distributed=True), feed, rows, batch_rows=30_000, partitions=3) == whole


def test_specifications_are_those_of_the_programs() -> None:
    for path, text in build.specifications().items():
        assert path.read_text(encoding="utf-8") == text, path.name
