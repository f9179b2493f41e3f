"""Shifts from iCalendar files: a rule sends to those who are on call at the time of sending."""

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from django.core.mail import EmailMessage
from django.utils import timezone, translation
from rest_framework.test import APIClient

from engine.model.faults import Refused
from engine.model.messages import message_from_json
from tests.webapp.alerts.test_lifecycle import crossing, record
from tests.webapp.alerts.test_routing import quiet, reached
from webapp.alerts.models import Alert, Notification, Shift, Turn
from webapp.alerts.rules import rule_save
from webapp.alerts.shift_calendars import run
from webapp.alerts.shifts import shift_list, shift_save, shifts_at, shifts_warn, turn_save, warning_of
from webapp.audit.models import Entry
from webapp.config.wording import translated
from webapp.queries.models import Query

WEEKLY = """BEGIN:VCALENDAR
VERSION:2.0
BEGIN:VEVENT
UID:1
DTSTART;TZID=Europe/Athens:20261001T220000
DTEND;TZID=Europe/Athens:20261002T060000
RRULE:FREQ=DAILY
EXDATE;TZID=Europe/Athens:20261124T220000
SUMMARY:Night: analyst and operator
END:VEVENT
BEGIN:VEVENT
UID:2
DTSTART;VALUE=DATE:20261125
ATTENDEE:mailto:Chief@example.org
SUMMARY:Holiday
END:VEVENT
END:VCALENDAR
"""
NOW = datetime(2026, 11, 23, 12, tzinfo=UTC)


def test_recurring_shifts_are_expanded_with_exceptions_in_their_time_zone() -> None:
    turns = run({"zone": "Europe/Athens", "now": NOW.isoformat()}, WEEKLY.encode())["turns"]
    spans = [(begin[:16], end[:16], names) for begin, end, names in turns]
    night = ["analyst", "operator"]
    # The holiday is a whole day of Athens; the night of the 24th is left out.
    assert spans[1:4] == [
        ("2026-11-23T20:00", "2026-11-24T04:00", night),
        ("2026-11-24T22:00", "2026-11-25T22:00", ["chief@example.org", "Holiday"]),
        ("2026-11-25T20:00", "2026-11-26T04:00", night),
    ]
    # In summer ten o'clock in Athens is an hour earlier.
    assert ("2027-07-01T19:00", "2027-07-02T03:00", night) in spans


@pytest.mark.parametrize(
    "data", [b"", b"BEGIN:VCALENDAR", b"\xff\xfe\x00", b"BEGIN:VCALENDAR\nBEGIN:VEVENT\nDTSTART:yesterday\nEND:VEVENT\nEND:VCALENDAR"]
)
def test_invalid_calendars_are_refused_or_empty(data: bytes) -> None:
    found = run({"zone": "UTC", "now": NOW.isoformat()}, data)
    assert "faults" in found or found["turns"] == []


@pytest.mark.parametrize("title", ["Nacht: ann und ben", "Night: ann and ben", "ann, ben", "ann & ben", "Dienst: ann/ben", "ann; ben"])
def test_names_in_a_title_are_separated_as_people_write_them(title: str) -> None:
    event = a_calendar_of("DTSTART:20261124T080000Z", "DTEND:20261124T160000Z").replace("Night: ben", title.replace(",", "\\,").replace(";", "\\;"))
    assert [names for _, _, names in run({"zone": "UTC", "now": NOW.isoformat()}, event.encode())["turns"]] == [["ann", "ben"]]


def a_calendar_of(*lines: str) -> str:
    return "\r\n".join(["BEGIN:VCALENDAR", "VERSION:2.0", "BEGIN:VEVENT", "SUMMARY:Night: ben", *lines, "END:VEVENT", "END:VCALENDAR", ""])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("<!DOCTYPE html>", "Dies ist keine iCalendar-Datei"),
        (a_calendar_of("DTSTART:20261123T080000Z").removesuffix("END:VCALENDAR\r\n"), "END:VCALENDAR fehlt"),
        (a_calendar_of("DTSTART:20261123T080000Z").replace("END:VEVENT\r\n", ""), "END:VEVENT fehlt"),
        (2 * a_calendar_of("DTSTART:20261123T080000Z"), "2 Kalender"),
        (a_calendar_of("DTSTART:28.11.2026 14:00"), "„Night: ben“ lässt sich DTSTART nicht lesen: 28.11.2026 14:00"),
        (a_calendar_of("DTSTART:20261123T080000Z", "RRULE:FREQ=WEEKLY;BYDAY=XX"), "RRULE nicht lesen: FREQ=WEEKLY;BYDAY=XX"),
        (a_calendar_of(), "hat keinen Beginn"),
        (a_calendar_of("DTSTART:20261124T080000Z"), "„Night: ben“ vom 2026-11-24 08:00:00+00:00 endet, wenn er beginnt"),
        (a_calendar_of("DTSTART:20261124T080000Z", "DTEND:20261123T160000Z"), "Berichtigen Sie sein Ende (DTEND)"),
        (a_calendar_of("DTSTART:20241123T080000Z"), "in den nächsten 400 Tagen"),
    ],
)
def test_a_broken_calendar_is_refused_with_the_place_and_the_remedy_in_the_readers_language(text: str, said: str) -> None:
    faults = run({"zone": "UTC", "now": NOW.isoformat()}, text.encode())["faults"]
    with translation.override("de"):
        refused = translated(message_from_json(faults[0]))
    assert said in refused
    assert re.search("xportier|lade", refused), "the remedy"


def test_an_event_with_thousands_of_people_is_refused_before_its_expansion() -> None:
    """80 kB of daily recurrences used to expand to 50 MB of names."""
    event = "BEGIN:VEVENT\nUID:1\nDTSTART:20261123T080000Z\nDTEND:20261123T160000Z\nRRULE:FREQ=DAILY\nSUMMARY:{}\nEND:VEVENT\n"
    for names in (",".join(f"n{n}" for n in range(51)), " and ".join(f"n{n}" for n in range(5_000))):
        found = run({"zone": "UTC", "now": NOW.isoformat()}, f"BEGIN:VCALENDAR\nVERSION:2.0\n{event.format(names)}END:VCALENDAR\n".encode())
        assert "at most 50" in message_from_json(found["faults"][0])


def calendar(*turns: tuple[datetime, datetime, str]) -> str:
    """A calendar with these spans and titles."""
    stamp = "%Y%m%dT%H%M%SZ"
    events = [
        f"BEGIN:VEVENT\nUID:{i}\nDTSTART:{a.strftime(stamp)}\nDTEND:{b.strftime(stamp)}\nSUMMARY:{who}\nEND:VEVENT\n"
        for i, (a, b, who) in enumerate(turns)
    ]
    return "BEGIN:VCALENDAR\nVERSION:2.0\n" + "".join(events) + "END:VCALENDAR\n"


services = [pytest.mark.services, pytest.mark.django_db]


class TestRouted:
    pytestmark = services

    def test_a_rule_sends_to_those_on_call_at_that_time(self, query: Query, people: SimpleNamespace) -> None:
        hour, now = timedelta(hours=1), timezone.now()
        text = calendar((now - hour, now + hour, "On call: viewer"), (now + hour, now + 2 * hour, "operator"), (now, now + hour, "somebody"))
        shift = shift_save(user=people.operator, name="duty", calendar=text)
        assert shift.unknown == ["somebody"]
        for who in (people.viewer, people.operator, people.analyst):
            quiet(who, who.username)
        rule_save(user=people.operator, name="first", shifts=[shift])
        rule_save(user=people.operator, name="later", shifts=[shift], after_minutes=90)
        record(query, crossing(query, "in", "a", 10))
        assert reached() == [("operator", "later"), ("viewer", "first")]
        assert {one.channel.name: one.after_minutes for one in Notification.objects.all()} == {"viewer": 0, "operator": 90}

    def test_shifts_are_imported_in_the_cage_and_can_be_tried(
        self, query: Query, people: SimpleNamespace, client_of: Callable[..., APIClient]
    ) -> None:
        now, client = timezone.now(), client_of(people.operator)
        text = calendar((now - timedelta(hours=1), now + timedelta(hours=1), "operator"))
        made = client.post("/api/v1/shifts/", {"name": "duty", "zone": "Europe/Athens", "calendar": text}, format="json").json()
        assert (made["on_call"], made["unknown"]) == (["operator"], []) and "calendar" not in made
        assert datetime.fromisoformat(made["known_until"]) - now < timedelta(hours=2), "the last turn ends then"
        address = f"/api/v1/shifts/{made['id']}/"
        for wrong in ("nonsense", calendar((now, now + timedelta(hours=1), "stranger"))):
            assert client.patch(address, {"calendar": wrong}, format="json").json()["faults"][0]["pointer"] == "/calendar"
        assert client.get(address).json()["on_call"] == ["operator"], "what was refused changes nothing"
        assert client_of(people.stranger).get(address).status_code == 404
        quiet(people.operator, "own")
        record(query, crossing(query, "in", "a", 10))
        tried = client.post("/api/v1/routing-rules/dry-run", {"name": "x", "shifts": [made["id"]]}, format="json").json()
        assert [(one["channel"]["name"], one["count"]) for one in tried["results"]] == [("own", 1)]
        assert Alert.objects.count() == 1 and client.delete(address).status_code == 204 and not Shift.objects.exists()

    def test_only_current_shifts_are_present(self, people: SimpleNamespace) -> None:
        shift = Shift.objects.create(owner=people.owner, name="Duty")
        for begin, person in ((-2, people.owner), (-1, people.analyst), (0, people.operator), (1, people.viewer)):
            at = NOW + timedelta(hours=begin)
            Turn.objects.create(shift=shift, person=person, begins_at=at, ends_at=at + timedelta(hours=1))
        Turn.objects.create(shift=shift, person=people.admin, begins_at=NOW - timedelta(hours=3), ends_at=NOW + timedelta(hours=3))
        (found,) = shift_list(user=people.owner, now=NOW)
        assert [turn.person.username for turn in found.present] == ["admin", "operator"]  # type: ignore[attr-defined]

    def test_a_calendar_that_is_too_large_is_refused(self, people: SimpleNamespace) -> None:
        with pytest.raises(Refused, match="1 MB"):
            shift_save(user=people.operator, name="duty", calendar="x" * 1_000_001)


@pytest.mark.services
@pytest.mark.django_db
def test_owners_are_warned_once_in_time_of_uncovered_days(
    people: SimpleNamespace, client_of: Callable[..., APIClient], settings: Any, mailoutbox: list[EmailMessage]
) -> None:
    """The page and one mail for each fault: it ends soon, it has ended, nobody is on call
    for longer than a weekend."""
    settings.EMAIL_GIVEN = True
    people.owner.email = "owner@example.org"
    people.owner.save()
    now, day = timezone.now(), timedelta(days=1)
    long = [(now + n * 7 * day, now + (n * 7 + 5) * day, "owner") for n in range(12)]
    quiet(people.owner)
    shift = shift_save(user=people.owner, name="duty", calendar=calendar(*long))

    def said_at(moment: datetime) -> tuple[str, int]:
        shown = warning_of(shifts_at(Shift.objects.all(), moment).get(), moment)
        shifts_warn(moment)
        return ("" if shown is None else shown.kind, len(mailoutbox))

    assert said_at(now + day) == said_at(now + 6 * day) == ("", 0), "a weekend is no gap"
    assert said_at(now + 60 * day) == said_at(now + 61 * day) == ("ends", 1)
    assert "ends on" in mailoutbox[0].subject and mailoutbox[0].to == ["owner@example.org"]
    assert said_at(now + 90 * day) == ("ended", 2)
    # Another calendar, whose only fault is a gap in nine days.
    shift_save(user=people.owner, shift=shift, calendar=calendar((now, now + 9 * day, "owner"), (now + 20 * day, now + 80 * day, "owner")))
    assert said_at(now + day) == ("", 2)
    assert said_at(now + 10 * day) == ("gap", 3)
    (shown,) = client_of(people.owner).get("/api/v1/shifts/").json()["results"]
    assert shown["warning"] == ""
    Turn.objects.all().delete()
    assert "Nobody is on call" in client_of(people.owner).get("/api/v1/shifts/").json()["results"][0]["warning"]
    # Without a mail server only the page warns; the mail is sent when there is one.
    settings.EMAIL_GIVEN = False
    assert said_at(now + 10 * day) == ("ended", 3)
    settings.EMAIL_GIVEN = True
    assert said_at(now + 10 * day) == ("ended", 4)


@pytest.mark.services
@pytest.mark.django_db
def test_the_mail_about_a_shift_is_in_its_owners_language(people: SimpleNamespace, settings: Any, mailoutbox: list[EmailMessage]) -> None:
    settings.EMAIL_GIVEN = True
    people.owner.email, people.owner.language = "owner@example.org", "de"
    people.owner.save()
    now = timezone.now()
    quiet(people.owner)
    shift = shift_save(user=people.owner, name="duty", calendar=calendar((now, now + timedelta(days=2), "owner")))
    shifts_warn(now)
    shift.refresh_from_db()
    assert mailoutbox[0].subject.startswith("Die Schicht duty: Der Kalender endet am ") and "Bereitschaft" in mailoutbox[0].body
    assert warning_of(shifts_at(Shift.objects.all(), now).get(), now).text.startswith("The calendar ends on ")  # type: ignore[union-attr]


@pytest.mark.services
@pytest.mark.django_db
class TestByHand:
    """Turns entered one by one."""

    HOUR = timedelta(hours=1)

    @pytest.fixture
    def shift(self, people: SimpleNamespace) -> Shift:
        return shift_save(user=people.operator, name="duty", zone="Europe/Athens", team=people.harbour)

    @staticmethod
    def turn(who: str, begin: datetime, end: datetime) -> dict[str, str]:
        return {"person": who, "begins_at": begin.isoformat(), "ends_at": end.isoformat()}

    def test_a_turn_is_entered_changed_and_removed(self, shift: Shift, people: SimpleNamespace, client_of: Callable[..., APIClient]) -> None:
        for who in (people.viewer, people.admin, people.operator):
            quiet(who, who.username)
        client, now, place = client_of(people.operator), timezone.now(), f"/api/v1/shifts/{shift.pk}/turns/"
        assert "enter turns" in client.get("/api/v1/shifts/").json()["results"][0]["warning"]
        made = client.post(place, self.turn("viewer", now - self.HOUR, now + self.HOUR), format="json")
        assert made.status_code == 201 and made.json()["by_hand"] is True
        later = client.post(place, self.turn("analyst", now + 2 * self.HOUR, now + 3 * self.HOUR), format="json").json()
        client.post(place, self.turn("admin", now + self.HOUR, now + 2 * self.HOUR), format="json")
        assert [one["person"] for one in client.get(place).json()["results"]] == ["viewer", "admin", "analyst"]
        (shown,) = client.get("/api/v1/shifts/").json()["results"]
        assert shown["on_call"] == ["viewer"] and datetime.fromisoformat(shown["known_until"]) == now + 3 * self.HOUR
        changed = client.patch(f"{place}{later['id']}/", {"person": "operator", "ends_at": (now + 200 * self.HOUR).isoformat()}, format="json")
        assert (changed.json()["person"], changed.json()["begins_at"]) == ("operator", later["begins_at"])
        assert client.get("/api/v1/shifts/").json()["results"][0]["warning"] == ""
        assert client.delete(f"{place}{later['id']}/").status_code == 204 and shift.turns.count() == 2
        assert Entry.objects.order_by("-pk")[0].object_type == "turn" and Entry.objects.order_by("-pk")[0].object_id == str(later["id"])

    def test_a_rule_sends_to_who_was_entered(self, shift: Shift, query: Query, people: SimpleNamespace) -> None:
        quiet(people.viewer, "viewer")
        rule_save(user=people.operator, name="first", shifts=[shift])
        now = timezone.now()
        turn_save(user=people.operator, shift=shift, person="viewer", begins_at=now - self.HOUR, ends_at=now + self.HOUR)
        record(query, crossing(query, "in", "a", 10))
        assert reached() == [("viewer", "first")]

    @pytest.mark.parametrize(
        ("who", "begin", "end", "pointer", "said"),
        [
            ("viewer", 2, 1, "/ends_at", "after it begins"),
            ("viewer", 2, 2, "/ends_at", "after it begins"),
            ("viewer", -3, -2, "/ends_at", "past"),
            ("viewer", 1, 24 * 365, "/ends_at", "100 days"),
            ("viewer", 24 * 401, 24 * 402, "/begins_at", "within the next 400 days"),
            ("stranger", 1, 2, "/person", "No member of your teams"),
            ("nobody there", 1, 2, "/person", "No member of your teams"),
            ("analyst", 5, 7, "/person", "already"),
        ],
    )
    def test_a_wrong_turn_is_refused_at_its_field(
        self, who: str, begin: int, end: int, pointer: str, said: str, shift: Shift, people: SimpleNamespace, client_of: Callable[..., APIClient]
    ) -> None:
        now = timezone.now()
        turn_save(user=people.operator, shift=shift, person="analyst", begins_at=now + 4 * self.HOUR, ends_at=now + 6 * self.HOUR)
        turn = self.turn(who, now + begin * self.HOUR, now + end * self.HOUR)
        answer = client_of(people.operator).post(f"/api/v1/shifts/{shift.pk}/turns/", turn, format="json")
        (fault,) = answer.json()["faults"]
        assert answer.status_code == 400 and fault["pointer"] == pointer and said in fault["message"]
        assert shift.turns.count() == 1

    def test_what_is_missing_is_said_at_its_field(self, shift: Shift, people: SimpleNamespace, client_of: Callable[..., APIClient]) -> None:
        answer = client_of(people.operator).post(f"/api/v1/shifts/{shift.pk}/turns/", {"person": "", "begins_at": "soon"}, format="json")
        assert {fault["pointer"] for fault in answer.json()["faults"]} == {"/person", "/begins_at", "/ends_at"}

    def test_another_calendar_keeps_turns_entered_by_hand_and_its_own_are_changed_there(
        self, shift: Shift, people: SimpleNamespace, client_of: Callable[..., APIClient]
    ) -> None:
        now, client = timezone.now(), client_of(people.operator)
        turn_save(user=people.operator, shift=shift, person="analyst", begins_at=now - self.HOUR, ends_at=now + 2 * self.HOUR)
        for who in ("viewer", "operator, analyst"):
            shift_save(user=people.operator, shift=shift, calendar=calendar((now - self.HOUR, now + 50 * self.HOUR, who)))
        place = f"/api/v1/shifts/{shift.pk}/turns/"
        rows = client.get(place).json()["results"]
        assert sorted((one["person"], one["by_hand"]) for one in rows) == [("analyst", False), ("analyst", True), ("operator", False)]
        assert sorted(client.get("/api/v1/shifts/").json()["results"][0]["on_call"]) == ["analyst", "operator"], "each once"
        of_calendar = next(one["id"] for one in rows if not one["by_hand"])
        assert client.delete(f"{place}{of_calendar}/").status_code == client.patch(f"{place}{of_calendar}/", {}, format="json").status_code == 403

    def test_only_those_who_may_change_the_shift_enter_turns(
        self, shift: Shift, people: SimpleNamespace, client_of: Callable[..., APIClient]
    ) -> None:
        now, place = timezone.now(), f"/api/v1/shifts/{shift.pk}/turns/"
        turn = turn_save(user=people.operator, shift=shift, person="analyst", begins_at=now, ends_at=now + self.HOUR)
        other = shift_save(user=people.stranger, name="other")
        for who, allowed in ((people.admin, True), (people.viewer, False)):
            client = client_of(who)
            assert client.get(place).json()["results"][0]["id"] == turn.pk
            wanted = self.turn("viewer", now + self.HOUR, now + 2 * self.HOUR)
            assert client.post(place, wanted, format="json").status_code == (201 if allowed else 403)
            assert client.patch(f"{place}{turn.pk}/", {}, format="json").status_code == (200 if allowed else 403)
        stranger = client_of(people.stranger)
        assert stranger.get(place).status_code == stranger.delete(f"{place}{turn.pk}/").status_code == 404
        assert stranger.delete(f"/api/v1/shifts/{other.pk}/turns/{turn.pk}/").status_code == 404, "a turn of another shift"

    def test_the_owner_is_warned_before_the_last_turn_entered_ends(
        self, shift: Shift, people: SimpleNamespace, settings: Any, mailoutbox: list[EmailMessage]
    ) -> None:
        settings.EMAIL_GIVEN = True
        people.operator.email = "operator@example.org"
        people.operator.save()
        quiet(people.viewer)
        now, day = timezone.now(), timedelta(days=1)

        def said_at(moment: datetime) -> tuple[str, int]:
            shown = warning_of(shifts_at(Shift.objects.all(), moment).get(), moment)
            shifts_warn(moment)
            return ("" if shown is None else shown.kind, len(mailoutbox))

        assert said_at(now) == ("ended", 0), "nobody needs a mail about what they are making"
        turn_save(user=people.operator, shift=shift, person="viewer", begins_at=now, ends_at=now + 10 * day)
        assert said_at(now) == ("", 0)
        assert said_at(now + 8 * day) == ("ends", 1) and "The last turn ends on" in mailoutbox[0].subject
        assert said_at(now + 11 * day) == ("ended", 2) and "calendar" not in mailoutbox[1].subject

    def test_a_shift_that_moved_from_a_calendar_to_turns_by_hand_says_what_ends(self, shift: Shift, people: SimpleNamespace) -> None:
        quiet(people.viewer)
        now, day = timezone.now(), timedelta(days=1)
        shift_save(user=people.operator, shift=shift, calendar=calendar((now - self.HOUR, now + day, "viewer")))
        turn_save(user=people.operator, shift=shift, person="viewer", begins_at=now + day, ends_at=now + 12 * day)

        def text_at(moment: datetime) -> str:
            shown = warning_of(shifts_at(Shift.objects.all(), moment).get(), moment)
            return "" if shown is None else shown.text

        assert text_at(now).startswith("The calendar ends on")
        assert text_at(now + 2 * day) == "" and text_at(now + 10 * day).startswith("The last turn ends on")
        assert text_at(now + 13 * day).startswith("The last turn has ended")
