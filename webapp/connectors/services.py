"""Services that change connectors, and test them before they are saved."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, suppress
from typing import Any, TypedDict
from urllib.parse import urlsplit

from django.db import transaction
from django.utils import timezone

from engine.model.faults import Fault, Faults, Refused, refuse, unknown_name
from engine.model.feed import Crs
from engine.model.messages import Message, message_of, untranslated
from engine.sinks.live import SinkKind
from engine.sinks.live.kinds import sink_kinds
from engine.sources.formats import FileFormat, InvalidLine, Layout, flattened, table_of
from engine.sources.guessing.columns import guess
from engine.sources.live import RECEIVED, Field, FieldType, Record, SourceKind, SourceUnavailable
from engine.sources.live.kinds import source_kinds
from engine.sources.reading import PLANE
from webapp.accounts.models import User
from webapp.config.errors import FaultRow, faults_body
from webapp.config.outside import RefusedAddress, check_host
from webapp.config.room import hold, room_check
from webapp.config.wording import translated
from webapp.connectors.answers import numbers_of
from webapp.connectors.network import PLACES, GuardedNetwork, port_problem
from webapp.connectors.rows import reading_for, rows_of
from webapp.feeds.models import Connector, ConnectorState, Feed
from webapp.queries.selectors import queries_visible

Kind = SourceKind | SinkKind
MOST_OF_A_FEED, MOST_OF_AN_OWNER = 20, 100
TEXT_CHARACTERS = 4_000
TRIAL_S, TRIAL_RECORDS = 10.0, 20
QUIET_AFTER_S = 1.0
_trials = threading.BoundedSemaphore(4)


def kinds() -> Mapping[str, Kind]:
    """All kinds, of both directions, by name."""
    return {**source_kinds(), **sink_kinds()}


def kind_of(name: str) -> Kind:
    """Raises Refused for a kind that is not installed."""
    known = kinds()
    if name not in known:
        raise refuse("/kind", unknown_name(name, known, what=Message("kind")))
    return known[name]


def settings_of(connector: Connector) -> dict[str, Any]:
    """All settings with the secret ones; of these, only those that were given are stored."""
    kind = kinds().get(connector.kind)
    empty = {one.name: one.default for one in kind.fields if one.type is FieldType.SECRET} if kind else {}
    return {**empty, **connector.settings, **(json.loads(connector.secrets) if connector.secrets else {})}


def check_places(kind: Kind, settings: Mapping[str, Any]) -> None:
    """Raises Refused if a host in the settings leads to an address that this installation does not
    connect to, or a port is not one that it listens on.

    Unknown or malformed hosts pass: they are looked up and checked again at each connection.
    """
    faults = Faults()
    for one in kind.fields:
        port: Any = settings.get(one.name)
        if one.listens and _problem(one, port) is None and (problem := port_problem(port)) is not None:
            faults.note(f"/settings/{one.name}", problem)
    for name, host in _hosts(kind, settings):
        try:
            check_host(host)
        except RefusedAddress as error:
            faults.note(f"/settings/{name}", message_of(error))
    if faults:
        raise Refused(faults)


def _hosts(kind: Kind, settings: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The hosts of the settings, with the names of their fields."""
    for name in {one.name for one in kind.fields} & set(PLACES):
        text = str(settings.get(name, ""))
        addresses = [text] if name == "url" else [f"//{one.strip()}" for one in text.split(",")]
        for address in addresses:
            with suppress(ValueError):
                yield name, urlsplit(address).hostname or ""


@transaction.atomic
def connector_create(
    *,
    feed: Feed,
    name: str,
    kind: str,
    settings: Mapping[str, Any],
    reading: Mapping[str, Any] | None = None,
    enabled: bool = True,
    set_by: User | None = None,
) -> Connector:
    """Makes a connector, which the process `connect` starts. Raises Refused."""
    of_feed = Message("A feed has at most {most} connectors.", most=MOST_OF_A_FEED)
    room_check(feed.connectors.all(), MOST_OF_A_FEED, of=feed, full=of_feed)
    # While the feed is held: it may have been transferred meanwhile.
    feed.refresh_from_db(fields=["owner"])
    of_owner = Connector.objects.filter(feed__owner=feed.owner)
    full = Message("The feeds of one owner have at most {most} connectors together: each is a thread of one process.", most=MOST_OF_AN_OWNER)
    room_check(of_owner, MOST_OF_AN_OWNER, of=feed.owner, full=full)
    connector = Connector(feed=feed, name=name, kind=kind, reading=dict(reading or {}), enabled=enabled, set_by=set_by)
    _set(connector, checked_settings(kind_of(kind), settings))
    _check_name(connector)
    _check_meaning(connector)
    connector.save()
    return connector


@transaction.atomic
def connector_update(*, connector: Connector, settings: Mapping[str, Any] | None = None, set_by: User | None = None, **changes: Any) -> Connector:
    """Changes what is given; secret settings that are left out stay. Another address or topic
    starts again, without an offset; another password does not. Raises Refused.

    `set_by`: the user who gives the settings.
    """
    connector = hold(connector)
    before, stream = settings_of(connector), dict(connector.settings)
    if changes.get("enabled") and not connector.enabled:
        # Its process is only about to start.
        connector.seen_at = timezone.now()
    for name, value in changes.items():
        setattr(connector, name, value)
    if settings is not None:
        kind = kind_of(connector.kind)
        _set(connector, checked_settings(kind, {**settings, **kept_secrets(kind, before, settings)}))
        connector.set_by = set_by
    _check_name(connector)
    if settings is not None or "reading" in changes:
        # A connector can be disabled even if its settings would no longer be accepted.
        _check_meaning(connector)
    if connector.settings != stream:
        connector.offset = None
    connector.revision += 1
    connector.failures, connector.last_error, connector.last_error_at, connector.next_try_at = 0, "", None, None
    if not connector.enabled:
        connector.state, connector.rate, connector.failing_since = ConnectorState.STOPPED, 0.0, None
    connector.save()
    return connector


def connector_delete(*, connector: Connector) -> None:
    """Ends the connector; its rows stay."""
    connector.delete()


def kept_secrets(kind: Kind, before: Mapping[str, Any], submitted: Mapping[str, Any]) -> dict[str, Any]:
    """The stored secrets that are not typed in again. Raises Refused if they would now be sent
    elsewhere: only their author knows them."""
    hidden = [one for one in kind.fields if one.type is FieldType.SECRET and _applies(one, kind, submitted)]
    kept = {one: before[one.name] for one in hidden if before.get(one.name) and one.name not in submitted}
    directing = [one for one in kind.fields if one.directs] or [one for one in kind.fields if one.type is not FieldType.SECRET]
    if kept and any(submitted.get(one.name, one.default) != before.get(one.name, one.default) for one in directing):
        raise Refused(
            Fault(
                f"/settings/{one.name}",
                Message("{label}: enter it again, because it would now be sent to another address.", label=untranslated(one.label)),
            )
            for one in kept
        )
    return {one.name: value for one, value in kept.items()}


def checked_settings(kind: Kind, submitted: Mapping[str, Any]) -> dict[str, Any]:
    """All settings of a kind, with the defaults of those that are not given or mean nothing. Raises
    Refused with pointers below /settings."""
    faults, checked = Faults(), {}
    known = {one.name: one for one in kind.fields}
    for name in submitted:
        if name not in known:
            faults.note(f"/settings/{name}", unknown_name(str(name), known, what=Message("setting")))
    for one in kind.fields:
        value = submitted.get(one.name, one.default) if _applies(one, kind, submitted) else one.default
        problem = _problem(one, value)
        if problem:
            faults.note(f"/settings/{one.name}", problem)
        checked[one.name] = value
    if not faults:
        for name, text in kind.check(checked).items():
            faults.note(f"/settings/{name}", text if isinstance(text, Message) else untranslated(text))
    if faults:
        raise Refused(faults)
    return checked


def _applies(one: Field, kind: Kind, submitted: Mapping[str, Any]) -> bool:
    """Whether a field applies, given the choices in the others."""
    if one.when is None:
        return True
    name, values = one.when
    decides = next(other for other in kind.fields if other.name == name)
    return submitted.get(name, decides.default) in values


def _problem(one: Field, value: Any) -> Message | None:
    if one.type is FieldType.BOOLEAN:
        return None if isinstance(value, bool) else Message("must be true or false")
    if one.type is FieldType.INTEGER:
        is_whole = isinstance(value, int) and not isinstance(value, bool)
        is_right = is_whole and one.least <= value <= one.most
        return None if is_right else Message("must be a whole number from {least} to {most}", least=one.least, most=one.most)
    if not isinstance(value, str) or len(value) > TEXT_CHARACTERS or "\x00" in value:
        return Message("must be a text of at most {most} characters", most=TEXT_CHARACTERS)
    if one.required and not value.strip():
        return Message("is needed")
    if one.type is FieldType.CHOICE and value not in dict(one.choices):
        return Message("must be one of: {known}", known=", ".join(name for name, _ in one.choices))
    return None


def _set(connector: Connector, settings: Mapping[str, Any]) -> None:
    secret = {one.name for one in kind_of(connector.kind).fields if one.type is FieldType.SECRET}
    connector.settings = {name: value for name, value in settings.items() if name not in secret}
    hidden = {name: value for name, value in settings.items() if name in secret and value != ""}
    connector.secrets = json.dumps(hidden) if hidden else ""


def _check_name(connector: Connector) -> None:
    if Connector.objects.filter(feed=connector.feed, name=connector.name).exclude(pk=connector.pk).exists():
        raise refuse("/name", Message("The feed already has a connector of this name."))


def _check_meaning(connector: Connector) -> None:
    kind = kind_of(connector.kind)
    if isinstance(kind, SinkKind):
        _check_queries(connector)
        return
    try:
        reading_for(connector.reading, kind, connector.feed.engine_feed())
    except Refused as refused:
        raise Refused([Fault(f"/reading{fault.pointer}", fault.message) for fault in refused.faults]) from None


def _check_queries(connector: Connector) -> None:
    """Only answers that the user who sets up the connector may see are sent."""
    if connector.reading:
        raise refuse("/reading", Message("Records of answers have a fixed form: their columns cannot be chosen."))
    try:
        chosen = numbers_of(connector.settings["queries"])
    except ValueError:
        raise refuse("/settings/queries", Message("Write the numbers of queries, separated by commas.")) from None
    visible = queries_visible(user=connector.set_by, feed=connector.feed) if connector.set_by is not None else set()
    if missing := sorted(chosen - visible):
        raise refuse("/settings/queries", Message("The feed has no query {names} that you may see.", names=", ".join(map(str, missing))))


class RefusedRecord(TypedDict):
    """Why a record becomes no row."""

    reason: str
    detail: str


class Meaning(TypedDict):
    """The rows that records become by `reading`, a guess where none was given;
    `faults`: those of the reading."""

    columns: list[str]
    reading: dict[str, Any]
    rows: list[dict[str, Any]]
    dead: list[RefusedRecord]
    faults: list[FaultRow]


class Trial(Meaning):
    """The first records of a source, or the message of a sink (`said`)."""

    records: list[dict[str, Any]]
    said: str


def connector_try(*, feed: Feed, kind: str, settings: Mapping[str, Any], reading: Mapping[str, Any]) -> Trial:
    """Connects, takes the first records, and shows the rows they would become; nothing is stored,
    or sent. Takes at most TRIAL_S. Raises Refused."""
    chosen = kind_of(kind)
    checked = checked_settings(chosen, settings)
    if not _trials.acquire(blocking=False):
        raise refuse("", Message("Several connectors are being tested just now: try again in a few seconds."))
    try:
        if isinstance(chosen, SinkKind):
            return {**_NO_ROWS, "records": [], "said": _description(chosen, checked)}
        records = _first_records(chosen, checked)
    except (SourceUnavailable, OSError) as error:
        raise refuse(_place_of(error, chosen), message_of(error) or untranslated(type(error).__name__)) from error
    finally:
        _trials.release()
    return {**_meaning(records, reading, chosen, feed), "records": [_shown(one) for one in records[:TRIAL_RECORDS]], "said": ""}


def _place_of(error: SourceUnavailable | OSError, kind: Kind) -> str:
    """The pointer to the setting that caused the failure; empty if there is none."""
    known = {one.name for one in kind.fields}
    return next((f"/settings/{name}" for name in getattr(error, "about", ()) if name in known), "")


_NO_ROWS: Meaning = {"columns": [], "reading": {}, "rows": [], "dead": [], "faults": []}


def _description(kind: SinkKind, settings: Mapping[str, Any]) -> str:
    with closing(kind.open(settings, GuardedNetwork(), "")) as sink:
        return sink.description()


def _first_records(kind: SourceKind, settings: Mapping[str, Any]) -> list[Record | InvalidLine]:
    records: list[Record | InvalidLine] = []
    end = time.monotonic() + TRIAL_S
    last = None
    with closing(kind.open(settings, GuardedNetwork(), "")) as source:
        for batch in source.batches(None):
            records += batch.records
            now = time.monotonic()
            last = now if batch.records else last
            if now > end or len(records) >= TRIAL_RECORDS or (last is not None and now > last + QUIET_AFTER_S):
                return records
    return records


def _meaning(records: list[Record | InvalidLine], reading: Mapping[str, Any], kind: SourceKind, feed: Feed) -> Meaning:
    """The rows that the records become by `reading`, or by a guess where it is not given."""
    whole = [flattened(dict(one)) for one in records if not isinstance(one, InvalidLine)]
    columns = list(dict.fromkeys(name for one in whole for name in one))[:200]
    engine_feed = feed.engine_feed()
    document = dict(reading) or (_likely(whole, columns, engine_feed) if kind.reading is None else {})
    try:
        chosen = reading_for(document, kind, engine_feed)
    except Refused as refused:
        return {**_NO_ROWS, "columns": columns, "reading": document, **faults_body(refused.faults)}
    piece = rows_of(records, chosen, engine_feed)
    return {
        "columns": columns,
        "reading": document,
        "rows": piece.rows.slice(0, TRIAL_RECORDS).to_pylist(),
        "dead": [{"reason": one.reason, "detail": translated(one.detail)} for one in piece.dead()[:TRIAL_RECORDS]],
        "faults": [],
    }


def _likely(whole: list[dict[str, Any]], columns: list[str], feed: Any) -> dict[str, Any]:
    """A guess as for files; empty where the records are written as the feed's rows are."""
    if not whole or {"entity", "t"} <= set(columns):
        return {}
    table = table_of([{name: one.get(name) for name in columns if name != RECEIVED} for one in whole])
    guessed = guess(table, Layout(FileFormat.JSON), "stream", {}).to_json()
    kept = {name: guessed[name] for name in ("entity", "time", "time_format", "x", "y", "event", "zone", "crs", "decimal")}
    if not kept["time"]:
        kept |= {"time": [RECEIVED], "time_format": "epoch_ms"}
    if feed.crs is Crs.PLANAR:
        # Any numbers may be places in a plane, and records without places are of no other.
        kept["crs"] = PLANE
    attributes = [{"source": name, "name": name, "type": str(type_)} for name, type_ in feed.columns.items() if name in columns]
    return {**kept, "attributes": attributes}


def _shown(one: Record | InvalidLine) -> dict[str, Any]:
    if isinstance(one, InvalidLine):
        return {"problem": translated(one.problem), "text": one.text}
    return {
        name: value if value is None or isinstance(value, bool | int | float) else str(value)[:200] for name, value in flattened(dict(one)).items()
    }
