"""Who is on call when, from an iCalendar file (RFC 5545), with recurring events expanded. Runs in a caged process."""

from __future__ import annotations

import re
import zoneinfo
from collections.abc import Mapping
from datetime import UTC, date, datetime, time, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from engine.model.messages import Message, message_of

FILE_BYTES = 1_000_000
TURNS = 5_000
AHEAD = timedelta(days=400)
"""Recurring events are expanded this far ahead; the calendar has to be imported again before then."""
NAME_LENGTH = 200
NAMES = 50
"""The maximum number of people of one event, as each recurrence repeats its names."""


class TooManyNames(ValueError):
    """An event names more people than take a turn together."""


def run(request: Mapping[str, Any], data: bytes) -> dict[str, Any]:
    """The program's work: `turns`, or `faults` when the file cannot be read. `request`: the `zone` of times without one, and `now`."""
    zoneinfo.reset_tzpath(to=())  # A process that opens no files has the zones that came with the code.
    import icalendar
    import recurring_ical_events

    now = datetime.fromisoformat(request["now"])
    try:
        calendar = icalendar.Calendar.from_ical(data)
        events = recurring_ical_events.of(calendar).between(now - timedelta(days=1), now + AHEAD)
        turns = [_turn(event, ZoneInfo(request["zone"])) for event in events[: TURNS + 1]]
    except TooManyNames as error:
        return {"faults": [message_of(error)]}
    except Exception as error:
        return {"faults": [Message("This is not a readable iCalendar file: {why}", why=str(error)[:250] or type(error).__name__)]}
    if len(turns) > TURNS:
        return {"faults": [Message("The calendar has more than {most:,} turns in the next {days} days.", most=TURNS, days=AHEAD.days)]}
    return {"turns": sorted(turns)}


def _turn(event: Any, zone: ZoneInfo) -> tuple[str, str, list[str]]:
    begin = event["DTSTART"].dt
    end = event["DTEND"].dt if "DTEND" in event else begin + (event["DURATION"].dt if "DURATION" in event else timedelta(days=1))
    return _moment(begin, zone), _moment(end, zone), _names(event)


def _moment(value: date, zone: ZoneInfo) -> str:
    moment = value if isinstance(value, datetime) else datetime.combine(value, time())
    return (moment if moment.tzinfo is not None else moment.replace(tzinfo=zone)).astimezone(UTC).isoformat()


def _names(event: Any) -> list[str]:
    """The people of the event: e-mail addresses of attendees, and the parts of its title after a colon, if there is one."""
    attending = event.get("ATTENDEE", [])
    mails = [str(one).lower().removeprefix("mailto:") for one in (attending if isinstance(attending, list) else [attending])]
    title = str(event.get("SUMMARY", "")).rpartition(":")[2]
    names = [name for name in (*mails, *(part.strip() for part in re.split(r" and |,", title))) if name]
    if len(names) > NAMES:
        raise TooManyNames(Message("An event names {count:,} people: at most {most} take a turn together.", count=len(names), most=NAMES))
    return [name[:NAME_LENGTH] for name in names]
