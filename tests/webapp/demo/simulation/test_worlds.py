"""The demo worlds: pure functions of seed and time, whose reports agree with their ground truth."""

from collections import Counter, defaultdict
from collections.abc import Callable
from functools import cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st
from shapely.geometry import shape

from webapp.demo.simulation import plaza, strait, warehouse
from webapp.demo.simulation.journeys import Journey, Journeys, Schedule
from webapp.demo.simulation.strait import Strait
from webapp.demo.simulation.world import World
from webapp.demo.simulation.worlds import WORLDS, world

NOW = 1_763_700_000_000
SIZES = {"city": 2_000, "strait": 400, "ocean": 70}
"""The number of entities in worlds where each reports regularly. The others show all in the next
frame, or report only events."""
SOON_MS = {"ocean": 120_000}
"""The time within which everything has reported, if not ten seconds."""


@cache
def of(name: str) -> World:
    return world(name)


@pytest.mark.parametrize("name", WORLDS)
def test_reports_do_not_depend_on_the_spans_requested(name: str) -> None:
    end = SOON_MS.get(name, 3_000)
    whole = of(name).rows(NOW, NOW + end)
    parts = pa.concat_tables([of(name).rows(NOW + a, NOW + b) for a, b in ((0, 1), (1, 1_700), (1_700, 1_700), (1_700, end))])
    assert whole.to_pylist() == parts.to_pylist() == world(name).rows(NOW, NOW + end).to_pylist()
    assert whole["t"].to_pylist() == sorted(whole["t"].to_pylist())
    assert world(name, 2).rows(NOW, NOW + end).to_pylist() != whole.to_pylist()


@pytest.mark.parametrize("name", SIZES)
def test_everybody_is_there_at_once_and_reports_soon(name: str) -> None:
    soon = NOW + SOON_MS.get(name, 10_000)
    silent = {one.entities[0] for one in of(name).truth(NOW, soon) if one.kind == "gap"}
    for rows in (of(name).snapshot(NOW), of(name).rows(NOW, soon)):
        assert len({*rows["entity"].to_pylist(), *silent}) == SIZES[name]


@pytest.mark.parametrize("name", sorted({*WORLDS} - {*SIZES}))
def test_positions_are_only_where_antennas_and_cameras_see(name: str) -> None:
    assert of(name).snapshot(NOW).num_rows == 0
    assert of(name).snapshot(NOW).schema == of(name).rows(NOW, NOW + 10_000).schema


@pytest.mark.parametrize("name", WORLDS)
def test_regions_are_valid_and_have_unique_names(name: str) -> None:
    places = of(name).places()
    assert len({place.name for place in places}) == len(places)
    assert all(shape(place.geometry).is_valid and shape(place.geometry).area > 0 for place in places)


@pytest.mark.parametrize("name", ["city", "plaza"])
def test_true_visitors_of_a_place_report_from_it(name: str) -> None:
    places = {place.name: shape(place.geometry) for place in of(name).places()}
    reports = of(name).rows(NOW, NOW + 600_000)
    reports = reports.filter(pc.is_valid(reports["x"]))
    entity, t = np.array(reports["entity"].to_pylist()), reports["t"].to_numpy()
    visits = [one for one in of(name).truth(NOW, NOW + 600_000) if one.kind == "visit" and one.start >= NOW and one.end <= NOW + 600_000]
    calls = [one for one in visits if one.end - one.start > 6_000]
    assert len(calls) > 20
    inside = 0
    for call in calls:
        mine = (entity == call.entities[0]) & (t >= call.start) & (t < call.end)
        assert mine.any()
        inside += shapely.intersects_xy(places[call.place], reports["x"].to_numpy()[mine], reports["y"].to_numpy()[mine]).mean()
    # Receivers err by up to 15 m in garages of 30 m: most reports are inside, not all.
    assert inside / len(calls) > 0.8


def test_the_pursuer_keeps_behind_the_one_that_flees() -> None:
    place = of("strait")
    pursuit = next(one for one in place.truth(NOW, NOW + 3_600_000) if one.kind == "pursuit")
    later, now = place.snapshot(pursuit.start + 25_000), place.snapshot(pursuit.start)
    names = now["entity"].to_pylist()
    pursuer, fled = (names.index(name) for name in pursuit.entities)
    assert abs(later["x"][pursuer].as_py() - now["x"][fled].as_py()) < 0.001
    assert abs(later["y"][pursuer].as_py() - now["y"][fled].as_py()) < 0.001


def test_only_smugglers_come_near_the_closed_area() -> None:
    sea = Strait(1)
    closed = shapely.Polygon([strait.PLANE.to_metres(*corner) for corner in strait.CLOSED])
    near = {one.name for one in sea.vessels if shapely.LineString([knot[1:] for knot in one.journey.knots]).distance(closed) < 500}
    assert near == {one.name for one in sea.vessels if any(event.kind == "passage" for event in one.truth_events)}
    assert len(near) == strait.SMUGGLERS


def test_silent_vessels_send_nothing() -> None:
    sea = Strait(1)
    reports = sea.rows(NOW, NOW + 3_600_000)
    entity, t = np.array(reports["entity"].to_pylist()), reports["t"].to_numpy()
    silences = [one for one in sea.truth(NOW, NOW + 3_600_000) if one.kind == "gap" and one.end <= NOW + 3_500_000]
    assert len(silences) > 3
    for silence in silences:
        mine = t[entity == silence.entities[0]]
        assert not ((mine >= silence.start) & (mine < silence.end)).any()
        assert ((mine >= silence.end) & (mine < silence.end + 9_000)).any()


def test_spells_and_fronts_show_in_the_buoys_readings() -> None:
    ocean = of("ocean")
    readings = ocean.rows(NOW, NOW + 4 * 3_600_000)
    entity, t = np.array(readings["entity"].to_pylist()), readings["t"].to_numpy()
    warm_and_calm = (readings["sst"].to_numpy() > 28) & (readings["wind"].to_numpy() < 2)
    low, warm_air = readings["pressure"].to_numpy() < 1006, readings["air"].to_numpy() > readings["sst"].to_numpy()
    truth = ocean.truth(NOW, NOW + 4 * 3_600_000)
    assert {one.kind for one in truth} == {"spell", "front", "upwelling"}
    in_spell = np.zeros(len(t), bool)
    for spell in (one for one in truth if one.kind == "spell"):
        in_spell |= np.isin(entity, spell.entities) & (t >= spell.start) & (t < spell.end)
    assert (in_spell == warm_and_calm).all()
    for front in (one for one in truth if one.kind == "front" and one.start >= NOW and one.end <= NOW + 4 * 3_600_000):
        first, reached = (entity == name for name in front.entities)
        span = (t >= front.start) & (t < front.end)
        assert (low & first & span).any()
        assert (warm_air & reached & span).any()


def test_the_history_of_the_buoys_ends_at_the_requested_time() -> None:
    t = of("ocean").history(NOW)["t"].to_numpy()
    assert (t[0] >= NOW - 6 * 86_400_000, t[-1] < NOW, (np.diff(t) >= 0).all()) == (True, True, True)


@pytest.mark.parametrize(("plan", "size"), [(plaza.plan, (960, 576)), (warehouse.plan, (1440, 864))])
def test_a_plan_is_a_picture(plan: Callable[[], bytes], size: tuple[int, int]) -> None:
    data = plan()
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    assert (int.from_bytes(data[16:20], "big"), int.from_bytes(data[20:24], "big")) == size


@pytest.mark.parametrize("seed", range(1, 5))
def test_every_kind_of_scene_happens_on_every_plaza(seed: int) -> None:
    least = {"greeting": 4, "meeting": 4, "moving": 4, "left-object": 3, "fight": 1, "crowd": 1, "round": 1, "visit": 15}
    happened = Counter(one.kind for one in world("plaza", seed).truth(0, plaza.CYCLE_MS))
    assert happened.keys() == least.keys()
    assert [kind for kind in least if happened[kind] < least[kind]] == []


def test_the_camera_sees_everybody_in_each_frame_from_the_first_to_the_last() -> None:
    begin, end = NOW, NOW + plaza.CYCLE_MS
    frames: dict[str, dict[int, list[str]]] = defaultdict(lambda: defaultdict(list))
    for row in of("plaza").rows(begin, end).to_pylist():
        assert (row["x"] is not None) == (row["event"] == "coord")
        frames[row["entity"]][row["t"]].append(row["event"])
    for seen in frames.values():
        for t, (place, activity, *edges) in seen.items():
            assert (t % plaza.FRAME_MS, place, activity in plaza.ACTIVITIES) == (0, "coord", True)
            if t > begin:
                assert ("appear" in edges) == (t - plaza.FRAME_MS not in seen)
            if t < end - plaza.FRAME_MS:
                assert ("disappear" in edges) == (t + plaza.FRAME_MS not in seen)


@given(st.lists(st.tuples(st.integers(1, 7), st.integers(0, 9)), min_size=1, max_size=4), st.integers(-30, 30), st.integers(0, 40))
def test_schedules_report_at_their_times_and_no_others(things: list[tuple[int, int]], start: int, length: int) -> None:
    interval, offset = (np.array(column, np.int64) for column in zip(*things, strict=True))
    thing, t = Schedule(interval, offset).reports(start, start + length)
    wanted = sorted((at, n) for n, (every, first) in enumerate(things) for at in range(start, start + length) if (at - first) % every == 0)
    assert list(zip(t.tolist(), thing.tolist(), strict=True)) == wanted


@given(st.integers(-50_000, 50_000), st.integers(-40_000, 40_000), st.integers(0, 40_000))
def test_halts_repeat_with_the_journey(phase: int, start: int, length: int) -> None:
    journey = Journey((0.0, 0.0))
    journey.go((10.0, 0.0), 2.0)
    journey.wait(3_000, "gate")
    journey.close(2.0)
    assert (journey.now, journey.stops[0].arrive, journey.stops[0].leave) == (13_000, 5_000, 8_000)
    journeys = Journeys([journey], np.array([phase]))
    found = [(stop.arrive, stop.leave) for _, stop in journeys.stops(start, start + length)]
    wanted = [(a, a + 3_000) for k in range(-20, 20) if (a := phase + k * 13_000 + 5_000) < start + length and a + 3_000 > start]
    assert found == wanted
    for arrive, leave in found:
        for t, still in ((arrive, True), (leave - 1, True), (leave + 1, False), (arrive - 1, False)):
            x, _, vx, _ = journeys.at(np.array([0]), np.array([t]))
            assert (vx[0] == 0 and x[0] == 10.0) == still
