"""Who is on call when, from an iCalendar file (RFC 5545), with recurring events
expanded. Runs in a caged process."""

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
"""Recurring events are expanded this far ahead; the calendar has to be
imported again before then."""
NAME_LENGTH = 200
NAMES = 50
"""The maximum number of people of one event, as each recurrence repeats its names."""


TITLE_LENGTH = 80
"""The most of an event's title, or of a wrong value in it, that a message repeats."""


BETWEEN_NAMES = re.compile(r" and | und |[,;&/]")
OF_TIMES = frozenset(["DTSTART", "DTEND", "DURATION", "RRULE", "RDATE", "EXDATE", "RECURRENCE-ID"])


class Unreadable(ValueError):
    """The calendar is refused; the message explains what to correct."""


def run(request: Mapping[str, Any], data: bytes) -> dict[str, Any]:
    """The program's work: `turns`, or `faults` when the file cannot be read. `request`: the `zone`
    of times without one, and `now`."""
    # A process that opens no files has only the zones of the loaded code.
    zoneinfo.reset_tzpath(to=())
    import icalendar
    import recurring_ical_events

    now = datetime.fromisoformat(request["now"])
    try:
        _check_frame(data)
        calendar = icalendar.Calendar.from_ical(data)
        _check_events(calendar, now, ZoneInfo(request["zone"]))
        events = recurring_ical_events.of(calendar).between(now - timedelta(days=1), now + AHEAD)
        turns = [_turn(event, ZoneInfo(request["zone"])) for event in events[: TURNS + 1]]
    except Unreadable as error:
        return {"faults": [message_of(error).to_json()]}
    except Exception as error:
        why = _short(str(error) or type(error).__name__)
        return {"faults": [Message("The calendar cannot be read. Export it again as an iCalendar file (.ics). The reason: {why}", why=why).to_json()]}
    if not turns:
        return {
            "faults": [Message("The calendar has no event in the next {days} days: add the turns, and export it again.", days=AHEAD.days).to_json()]
        }
    if len(turns) > TURNS:
        return {"faults": [Message("The calendar has more than {most:,} turns in the next {days} days.", most=TURNS, days=AHEAD.days).to_json()]}
    return {"turns": sorted(turns)}


def _check_frame(data: bytes) -> None:
    """The library's messages about these do not explain what to do."""
    if (calendars := _lines(data, b"BEGIN:VCALENDAR")) == 0:
        raise Unreadable(Message("This is not an iCalendar file: the line BEGIN:VCALENDAR is missing. Export the calendar as an .ics file."))
    for part in ("VCALENDAR", "VEVENT"):
        if _lines(data, b"END:%b" % part.encode()) < _lines(data, b"BEGIN:%b" % part.encode()):
            raise Unreadable(Message("The calendar is not complete: a line END:{part} is missing. Export or download it again.", part=part))
    if calendars > 1:
        raise Unreadable(Message("The file has {count:,} calendars: export only the one with the turns.", count=calendars))


def _lines(data: bytes, line: bytes) -> int:
    return len(re.findall(rb"^(?:\xef\xbb\xbf)?%b[ \t\r]*$" % line, data, re.MULTILINE | re.IGNORECASE))


def _check_events(calendar: Any, now: datetime, zone: ZoneInfo) -> None:
    for event in calendar.walk("VEVENT"):
        title = _title(event)
        for name in (name for name, _ in event.errors if name in OF_TIMES):
            raise Unreadable(
                Message(
                    "The event “{title}” has a {name} that cannot be read: {given}. Correct it in the calendar and export it again.",
                    title=title,
                    name=name,
                    given=_short(str(event[name])),
                )
            )
        if "DTSTART" not in event:
            raise Unreadable(Message("The event “{title}” has no beginning (DTSTART). Correct it in the calendar and export it again.", title=title))
        begin, end = (datetime.fromisoformat(one) for one in _turn(event, zone)[:2])
        # The library would exchange them, or leave the event out. Past events do not matter.
        if end <= begin and ("RRULE" in event or "RDATE" in event or begin > now - timedelta(days=1)):
            raise Unreadable(
                Message(
                    "The event “{title}” of {begin} ends when it begins, or before. Correct its end (DTEND) in the calendar and export it again.",
                    title=title,
                    begin=str(event["DTSTART"].dt),
                )
            )


def _title(event: Any) -> str:
    return _short(str(event.get("SUMMARY", "") or event.get("UID", "?")))


def _short(text: str) -> str:
    return text if len(text) <= TITLE_LENGTH else f"{text[:TITLE_LENGTH]}…"


def _turn(event: Any, zone: ZoneInfo) -> tuple[str, str, list[str]]:
    begin = event["DTSTART"].dt
    if "DTEND" in event:
        end = event["DTEND"].dt
    elif "DURATION" in event:
        end = begin + event["DURATION"].dt
    else:
        # RFC 5545, 3.6.1: a day without an end is that day, a moment without one ends at once.
        end = begin if isinstance(begin, datetime) else begin + timedelta(days=1)
    return _moment(begin, zone), _moment(end, zone), _names(event)


def _moment(value: date, zone: ZoneInfo) -> str:
    moment = value if isinstance(value, datetime) else datetime.combine(value, time())
    return (moment if moment.tzinfo is not None else moment.replace(tzinfo=zone)).astimezone(UTC).isoformat()


def _names(event: Any) -> list[str]:
    """The people of the event: e-mail addresses of attendees, and the names in its title,
    after a colon if there is one."""
    attending = event.get("ATTENDEE", [])
    mails = [str(one).lower().removeprefix("mailto:") for one in (attending if isinstance(attending, list) else [attending])]
    title = str(event.get("SUMMARY", "")).rpartition(":")[2]
    names = [name for name in (*mails, *(part.strip() for part in BETWEEN_NAMES.split(title))) if name]
    if len(names) > NAMES:
        raise Unreadable(Message("An event names {count:,} people: at most {most} may be on call together.", count=len(names), most=NAMES))
    return [name[:NAME_LENGTH] for name in names]
