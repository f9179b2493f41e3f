"""Every template of the gallery, with its default values, passes the checker on every suitable
feed, and finds what its sentence describes."""

from __future__ import annotations

import json
from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.families import family_of
from engine.model.faults import Refused
from engine.model.feed import Feed
from engine.operator import RegisteredQuery
from engine.runtime.evaluator import Evaluator
from engine.specification import check
from tests.examples import examples
from webapp.demo.simulation.worlds import WORLDS, world
from webapp.platform.folders import ROOT
from webapp.queries import gallery
from webapp.queries.references import frozen, named_regions

TEMPLATES = sorted(gallery.templates())
POSITIONS = [name for name in TEMPLATES if not gallery.templates()[name].get("needs", {}).get("events")]
DEMO = sorted(path.stem for path in (ROOT / "fixtures" / "scenarios").glob("*.json") if path.stem in WORLDS)
SQUARE = {"type": "Polygon", "coordinates": [[[0, 0], [10, 0], [10, 10], [0, 10], [0, 0]]]}
PLANE = Feed.from_json({"name": "f", "crs": "planar", "time": "ms", "columns": {"speed": "float", "kind": "string"}})
TICKS = Feed.from_json({"name": "f", "crs": "planar", "time": "ticks", "columns": {"speed": "float", "kind": "string"}})


def demo(name: str) -> SimpleNamespace:
    """A demo feed as its scenario registers it, with its regions."""
    document = json.loads((ROOT / "fixtures" / "scenarios" / f"{name}.json").read_text())["feed"]
    keys = ("name", "crs", "time", "lateness", "columns")
    places = world(name).places()
    return SimpleNamespace(
        feed=Feed.from_json({key: document[key] for key in keys}),
        tags={place.name: place.tags for place in places},
        regions={place.name: place.geometry for place in places},
    )


def filled(name: str, feed: Feed, tags: dict[str, Any], **values: Any) -> dict[str, Any]:
    return gallery.fill(name, {**gallery.defaults(gallery.templates()[name], feed, tags), **values}, feed)


@pytest.mark.parametrize("feed", DEMO)
def test_every_template_for_positions_passes_the_checker_on_every_demo_feed_it_suits(feed: str) -> None:
    place = demo(feed)
    suited = {entry["name"] for entry in gallery.gallery(place.feed, place.tags) if entry["unsuited"] is None}
    offered = set(POSITIONS) & suited
    assert len(offered) >= (8 if "float" in place.feed.columns.values() else 5)
    for name in offered:
        specification = filled(name, place.feed, place.tags)
        check(specification, place.feed, place.regions)
        # The program that a job compiles needs no other documents.
        ready = frozen(specification, place.regions)
        assert check(ready, place.feed, {}).outputs == tuple(gallery.templates()[name]["outputs"])
        assert named_regions(specification) <= set(place.regions)


@pytest.mark.parametrize("name", TEMPLATES)
def test_a_template_passes_the_checker_on_a_feed_that_it_suits(name: str) -> None:
    geographic = Feed.from_json({"name": "f", "crs": "geographic", "time": "ms", "columns": {"sog": "float", "ship_type": "string"}})
    tags: dict[str, Any] = {"a": (), "b": ()}
    regions = {"a": SQUARE, "b": SQUARE}
    tried = 0
    for feed in (PLANE, TICKS, geographic):
        if next(entry for entry in gallery.gallery(feed, tags) if entry["name"] == name)["unsuited"] is None:
            check(filled(name, feed, tags), feed, regions)
            tried += 1
    assert tried > 0


@pytest.mark.parametrize("name", TEMPLATES)
def test_templates_that_need_places_are_unsuited_for_rows_without(name: str) -> None:
    feed = Feed.from_json({"name": "f", "crs": gallery.templates()[name].get("needs", {}).get("crs", "planar"), "time": "ms",
                           "columns": {"speed": "float", "kind": "string"}})  # fmt: skip
    entry = next(entry for entry in gallery.gallery(feed, {"a": ()}, has_places=False) if entry["name"] == name)
    checked = check(filled(name, feed, {"a": (), "b": ()}), feed, {"a": SQUARE, "b": SQUARE})
    assert (entry["unsuited"] is not None) == family_of(checked).uses_places(checked)


def test_a_history_is_read_with_fewer_steps() -> None:
    def step(name: str, feed: Feed) -> Any:
        values = gallery.defaults(gallery.templates()[name], feed, {"a": ()})
        return gallery.fill(name, values, feed, wall_clock=False)["step"]

    assert (step("stopped", PLANE), step("fighting", PLANE), step("stopped", TICKS)) == ("PT1M", "PT1S", 250)
    assert filled("stopped", PLANE, {})["step"] == "PT10S"


@pytest.mark.parametrize("name", TEMPLATES)
def test_a_sentence_speaks_of_every_parameter_and_a_program_of_no_other(name: str) -> None:
    template = gallery.templates()[name]
    used = set(gallery.holes([template["program"], template["inputs"], template["areas"], template.get("synopsis", {})]))
    assert used == set(template["parameters"]) == set(gallery.holes(template["sentence"]))
    assert all(parameter["kind"] in gallery.KINDS for parameter in template["parameters"].values())


def test_faults_of_values_name_the_parameter() -> None:
    def pointers(**values: Any) -> list[str]:
        with pytest.raises(Refused) as refused:
            filled("kind_inside", PLANE, {"a": ()}, **values)
        return [fault.pointer for fault in refused.value.faults]

    assert pointers(area=None) == ["/values/area"]
    assert pointers(column="speed") == ["/values/column"]
    assert pointers(kind="it's") == ["/values/kind"]
    assert pointers(span=0) == ["/values/span"]
    assert pointers(span="soon") == ["/values/span"]
    assert pointers(other=1) == ["/values/other"]
    with pytest.raises(Refused, match="must be a number, 0 or more"):
        filled("stopped", PLANE, {}, speed=-1)
    with pytest.raises(Refused, match="did you mean 'meeting'"):
        gallery.fill("meetin", {}, PLANE)


@pytest.mark.parametrize("event", ["read", "Gate read", "not", "Übergabe\\n"])
def test_a_template_is_about_the_events_that_the_feed_has(event: str) -> None:
    for name, template in gallery.templates().items():
        values = {**gallery.defaults(template, PLANE, {"a": ()})}
        if "position" not in template["inputs"] or None in values.values():
            continue
        filled_one = gallery.fill(name, values, PLANE, event=event)
        assert event in filled_one["inputs"] and "position" not in filled_one["inputs"]
        program = check(frozen(filled_one, {"a": SQUARE}), PLANE, {}).program
        assert event in {name for name, _ in program.inputs}


@pytest.mark.parametrize("event", ["it's", "a\nb", "{limit}", "position"])
def test_an_event_that_cannot_be_a_name_is_left_to_the_reader(event: str) -> None:
    values = gallery.defaults(gallery.templates()["silent"], PLANE, {})
    assert "happensAt(position(V), T)" in gallery.fill("silent", values, PLANE, event=event)["program"]


def answers(name: str, rows: Iterable[dict[str, Any]], **values: Any) -> set[tuple[Any, ...]]:
    """(kind, entities, start, end) of a filled template over rows of
    PLANE, computed by the engine."""
    specification = {**filled(name, PLANE, {"a": ()}, **values), "window": 60_000, "step": 1_000}
    query = RegisteredQuery("0", 1, check(frozen(specification, {"a": SQUARE}), PLANE, {}))
    evaluator = Evaluator.start(PLANE, [query])
    types = {"string": pa.string(), "int": pa.int64(), "float": pa.float64()}
    ordered = [{"event": "position", "seq": seq, **row} for seq, row in enumerate(sorted(rows, key=lambda row: row["t"]))]
    schema = pa.schema([*((column, types[str(kind)]) for column, kind in PLANE.types.items()), ("seq", pa.int64())])
    found: dict[tuple[Any, ...], int] = {}
    for changes in (evaluator.process(pa.Table.from_pylist(ordered, schema=schema)).changes, evaluator.finish().changes):
        for row in changes.to_pylist():
            key = (row["kind"], tuple(row["entities"]), row["start"], row["end"])
            found[key] = found.get(key, 0) + row["weight"]
    return {key for key, weight in found.items() if weight}


def steps(entity: str, *points: tuple[int, float, float], **more: Any) -> list[dict[str, Any]]:
    return [{"entity": entity, "t": t, "x": x, "y": 5.0, "speed": speed, "kind": "van", **more} for t, x, speed in points]


def test_entities_that_stay_close_give_one_pair() -> None:
    rows = [*steps("b", *((t, 20.0, 1) for t in range(0, 20_000, 1000))), *steps("a", *((t, 21.0, 1) for t in range(4000, 12_000, 1000)))]
    assert answers("meeting", rows, distance=2, span="PT5S", slot="PT1S") == {("meeting", ("a", "b"), 4000, 12_000)}
    assert answers("meeting", rows, distance=2, span="PT8S", slot="PT1S") == set()


def test_a_stop_begins_with_the_first_slow_report_and_ends_with_the_first_fast_one() -> None:
    rows = steps("a", (0, 0, 5), (1000, 0, 0), (4000, 0, 0), (7000, 0, 0), (8000, 0, 5))
    assert answers("stopped", rows, speed=1, span="PT3S", gap="PT4S") == {("stopped", ("a",), 1001, 8001)}


def test_a_limit_may_be_negative_and_is_not_passed_when_reached() -> None:
    rows = steps("a", (0, 0, -20), (1000, 0, -18), (2000, 0, -17.5), (6000, 0, -18), (7000, 0, -19))
    values = {"column": "speed", "limit": -18, "span": "PT3S"}
    assert answers("above_limit", rows, **values) == {("above", ("a",), 2001, 6001)}
    assert answers("below_limit", rows, **values | {"limit": -17}) == {("below", ("a",), 1, None)}


def test_silence_holds_from_the_deadline_to_the_next_report() -> None:
    rows = [*steps("a", (0, 0, 5), (2000, 0, 5), (20_000, 0, 5)), *steps("b", *((t, 0, 5) for t in range(0, 21_000, 1000)))]
    assert answers("silent", rows, span="PT5S") == {("silent", ("a",), 7001, 20_001)}


def test_speeding_counts_only_inside_the_area() -> None:
    rows = steps("a", (0, -5, 9), (1000, 5, 9), (2000, 5, 9), (3000, 5, 1), (4000, 20, 9))
    assert answers("speeding", rows, speed=3, area={"region": "a"}) == {("speeding", ("a",), 1000, 3001)}


def test_braking_counts_only_within_its_time() -> None:
    rows = (
        steps("a", (0, 0, 9), (1000, 0, 3), (3000, 0, 0.1))
        + steps("b", (0, 0, 9), (1000, 0, 3), (9000, 0, 0.1))
        + steps("c", (0, 0, 9), (1000, 0, 0.1))
    )
    found = answers("braking", rows, high=5, low=1, span="PT4S")
    assert found == {("braking", ("a",), 3000, 3000), ("braking", ("c",), 1000, 1000)}


def test_a_voyage_is_on_time_or_late() -> None:
    there = {"center": [100, 5], "radius": 10}
    rows = steps("a", (0, 5, 1), (1000, 50, 1), (4000, 100, 1)) + steps("b", (0, 5, 1), (1000, 50, 1), (30_000, 100, 1))
    found = answers("voyage", rows, origin={"region": "a"}, destination=there, span="PT10S")
    # In the dialect rtec the start of what holds from 4000 on falls on the tick before.
    assert found == {("arrival", ("a",), 3999, 3999), ("late", ("b",), 11_000, 30_000)}


def test_only_the_chosen_kind_can_trespass() -> None:
    rows = [*steps("a", *((t, 5.0, 1) for t in range(0, 9000, 1000))), *steps("b", *((t, 5.0, 1) for t in range(0, 9000, 1000)), kind="bus")]
    found = answers("kind_inside", rows, kind="bus", area={"region": "a"}, span="PT3S")
    assert {(kind, who) for kind, who, *_ in found} == {("trespassing", ("b",))}


def test_a_place_is_full_with_the_one_that_exceeds_the_number() -> None:
    def at(t: int, who: str, place: str) -> dict[str, Any]:
        return {"entity": who, "t": t, "kind": place}

    came = [at(1000, "a", "dock"), at(2000, "b", "dock"), at(3000, "c", "dock"), at(3000, "d", "dock")]
    left = [at(4000, "a", "gate"), at(4500, "b", "dock"), at(5000, "c", "gate"), at(5000, "e", "dock"), at(6000, "b", "shelf")]
    rows = [*came, *left, at(40_000, "x", "shelf")]
    assert answers("full_place", rows, column="kind", number=2, gap="PT10S") == {("full", ("dock",), 3002, 6002)}
    assert answers("full_place", rows, column="kind", number=3, gap="PT10S") == {("full", ("dock",), 3002, 4002)}
    assert answers("full_place", rows[:5], column="kind", number=2, gap="PT10S") == {("full", ("dock",), 3002, None)}
    # Of those without another report, a leaves 10 s after its first, then c and d.
    again = [*came, at(11_500, "b", "dock"), at(40_000, "x", "shelf")]
    assert answers("full_place", again, column="kind", number=2, gap="PT10S") == {("full", ("dock",), 3002, 13_002)}


READINGS = st.dictionaries(st.tuples(st.integers(1, 40), st.sampled_from("abcde")), st.sampled_from(["dock", "gate"]), min_size=1, max_size=30)


@settings(max_examples=examples(100), deadline=None)
@given(READINGS, st.integers(0, 3))
def test_full_places_are_those_that_counting_at_each_instant_finds(readings: dict[tuple[int, str], str], number: int) -> None:
    gap = 7_000
    rows = [{"entity": who, "t": 1000 * t, "kind": place} for (t, who), place in sorted(readings.items())]

    def is_full(place: str, instant: int) -> bool:
        last = {row["entity"]: row for row in rows if row["t"] < instant}
        return sum(row["kind"] == place and instant <= row["t"] + gap for row in last.values()) > number

    expected = set()
    for place in ("dock", "gate"):
        begin = None
        for instant in sorted({row["t"] + after + 1 for row in rows for after in (0, gap)}):
            if is_full(place, instant) and begin is None:
                begin = instant
            elif not is_full(place, instant) and begin is not None:
                # What begins or ends at an instant holds, or not, from the next one on.
                expected.add(("full", (place,), begin + 1, instant + 1))
                begin = None
    end = {"entity": "z", "t": 90_000, "kind": "end"}
    assert answers("full_place", [*rows, end], column="kind", number=number, gap="PT7S") == expected


def test_only_one_that_stays_at_the_chosen_place_without_a_break_stays_too_long() -> None:
    def reads(who: str, place: str, *minutes: int) -> list[dict[str, Any]]:
        return [{"entity": who, "t": 60_000 * minute, "kind": place} for minute in minutes]

    rows = [
        *reads("long", "dock", *range(0, 200, 20)),
        *reads("long", "gate", 200),
        *reads("short", "dock", *range(0, 120, 20)),
        *reads("short", "gate", 120),
        *reads("elsewhere", "gate", *range(0, 240, 20)),
        *reads("away", "dock", 0, 20, 40, 130, 150),
        *reads("still", "dock", *range(60, 260, 20)),
    ]
    found = answers("long_stay", sorted(rows, key=lambda row: row["t"]), column="kind", place="dock")
    assert {(who, start // 60_000, end and end // 60_000) for _, (who,), start, end in found} == {("long", 0, 200), ("still", 60, None)}
