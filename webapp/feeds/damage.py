"""Feeds whose log cannot be read: stopped with the reason, and repaired.
All other feeds continue."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from django.db import transaction

from engine.model.events import stamped_schema
from engine.model.messages import Message
from engine.sources.repair import LogExtent, Repaired, repair, replace_damaged
from engine.sources.segments import LogDamaged
from engine.sources.shared_log import SharedLog
from webapp.feeds.heads import feed_event_add, feed_status
from webapp.feeds.logs import event_log
from webapp.feeds.models import Feed, IngestCounter, LogDamage


def feed_set_aside(*, feed: Feed, damage: LogDamaged) -> None:
    """Records why the feed cannot continue, once."""
    file = "" if damage.file is None else f"{damage.file.parent.name}/{damage.file.name}"
    with transaction.atomic():
        record, is_new = LogDamage.objects.get_or_create(feed=feed, defaults={"file": file, "reason": damage.reason})
        if is_new:
            feed_event_add(feed, "damaged", record.sentence)


def feeds_set_aside() -> set[int]:
    """The ids of the feeds that wait for their repair."""
    return set(LogDamage.objects.values_list("feed_id", flat=True))


@contextmanager
def damage_isolated(feed: Feed) -> Iterator[None]:
    """A damaged log stops this feed and leaves the others running."""
    try:
        yield
    except LogDamaged as damage:
        feed_set_aside(feed=feed, damage=damage)


class RowsLost(RuntimeError):
    """A store has lost rows; the text describes what to do."""


def feed_repair(*, feed: Feed, give_up: bool = False) -> list[Repaired]:
    """Repairs the feed's log and resumes the feed; returns the result for each file. Rows that are
    lost unprocessed are counted.

    Files of a store may have copies there: their rows are given up only with `give_up`, else raises
    RowsLost.
    """
    counter = IngestCounter.objects.get_or_create(feed=feed)[0]
    status = feed_status(feed_id=feed.pk)
    last_seq = status["last_seq"]
    reach = LogExtent(max(counter.log_seq, last_seq + 1), status["max_t"], last_seq + 1)
    done = _repaired(feed, reach, give_up)
    with transaction.atomic():
        counter = IngestCounter.objects.select_for_update().get(feed=feed)
        last_seq = feed_status(feed_id=feed.pk)["last_seq"]
        # Rows of a file that lists its deliveries are counted as received; of others, those
        # that had been counted before.
        counter.lost += sum(seq > last_seq and (one.counted or seq < counter.log_seq) for one in done for seq in one.lost)
        counter.save(update_fields=["lost"])
        LogDamage.objects.filter(feed=feed).delete()
        for one in done:
            feed_event_add(feed, "repaired", sentence_of(one))
    return done


def _repaired(feed: Feed, reach: LogExtent, give_up: bool) -> list[Repaired]:
    log, schema = event_log(feed.name), stamped_schema(feed.engine_feed())
    if not isinstance(log, SharedLog):
        return repair(log, schema, reach)
    return replace_damaged(log, schema) if give_up else _verified(log)


def _verified(log: SharedLog) -> list[Repaired]:
    """Raises RowsLost unless the log is complete (again): files that a store lost are
    restored from its copies."""
    for segment in log.segments():
        try:
            segment.verify()
        except LogDamaged as damage:
            raise RowsLost(
                f"Bring back {segment.path} in {log.files.title} from the store's own copies ({damage.reason}), then run this again. "
                "If there is none, --give-up keeps what can be read and counts the other rows as lost."
            ) from damage
    return []


def sentence_of(one: Repaired) -> Message:
    """A sentence about the repair."""
    rows = Message("rows {first} to {last}: {kept} kept", first=one.first_seq, last=one.next_seq - 1, kept=one.kept)
    if not one.lost:
        return Message("{file} was repaired ({reason}): {rows}, none lost.", file=one.file, reason=one.reason, rows=rows)
    return Message(
        "{file} was repaired ({reason}): {rows}, {count} lost ({ranges}).",
        file=one.file,
        reason=one.reason,
        rows=rows,
        count=len(one.lost),
        ranges=_ranges(one.lost),
    )


def _ranges(numbers: Sequence[int]) -> str:
    """`3 to 5, 9` of the numbers in order."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    texts = [str(a) if a == b else f"{a} to {b}" for a, b in runs]
    return ", ".join(texts[:10]) + (f" and {len(texts) - 10} more" if len(texts) > 10 else "")
