"""The number of entities in a region over a period: computed from the log, in a process that can be
killed.

`run` is what that process does (`webapp/cage/child.py`), within the limits of a preview; it loads
neither Django nor a database.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, cast

from engine.model.messages import Message
from webapp.queries.caged import SECONDS, Period, answer_of
from webapp.queries.progress import accepted_rows

if TYPE_CHECKING:
    from webapp.queries.trial_answers import OccupancyCourse

STEPS = 5_000
"""At most this many steps are shown, the newest."""
LEAST_BEFORE = 600_000
"""In the feed's unit: reports are read at least from this long before the period, to know who
was inside at its beginning."""


def occupancy_course(*, log_root: str, feed: dict[str, Any], specification: Any, period: Period) -> OccupancyCourse:
    """The count of a checked, frozen specification over a period of the log.

    Raises PreviewFailed.
    """
    request = {"log_root": log_root, "feed": feed, "specification": specification, "period": asdict(period)}
    answer = answer_of(
        __name__,
        request,
        seconds=SECONDS,
        too_long=Message("It took more than {seconds} seconds to count: choose a shorter period.", seconds=f"{SECONDS:g}"),
        broke_off=Message("Counting needs too much memory: choose a shorter period."),
    )
    return cast("OccupancyCourse", answer)


def run(request: Mapping[str, Any], data: bytes = b"") -> dict[str, Any]:
    """The program's work."""
    from engine.model.feed import Feed
    from engine.occupancy.course import course
    from engine.sources.eventlog import EventLog
    from engine.specification import check

    feed = Feed.from_json(request["feed"])
    specification = check(request["specification"], feed, {})
    log = EventLog(request["log_root"], feed.name)
    newest = log.end[1]
    if newest is None:
        return {"from": None, "to": None, "rows": 0, "steps": []}
    begin, end = Period(**request["period"]).ends(newest)
    before = max(specification.stale or 0, LEAST_BEFORE)
    batch = accepted_rows(log, feed, begin - before, end + 1, None)
    steps = course(specification, feed, batch, end)
    # The step before the period gives the count at its beginning.
    first = max((i for i, (t, _) in enumerate(steps) if t <= begin), default=0)
    return {"from": begin, "to": end, "rows": len(batch), "steps": steps[first:][-STEPS:]}
