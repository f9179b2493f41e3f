"""Delivers alerts to receivers: planned, grouped, sent and then marked as sent.

Each step is safe to repeat and to run twice at the same time: an alert is planned under its row's
lock, a message is made under its channel's, and sent by the process that claims its row with a
conditional update. A crash between sending and marking sends again with the same id.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import random
from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from django.db import transaction
from django.db.models import Exists, F, Min, OuterRef, Q, QuerySet
from django.utils import timezone

from engine.model.faults import refuse
from engine.model.messages import Message
from webapp.accounts.models import Team, User
from webapp.accounts.quotas import quota_check, quota_room
from webapp.alerts.models import Alert, AlertState, Channel, ChannelKind, Delivery, Notification
from webapp.alerts.routing import routes_of
from webapp.alerts.rows import alert_row
from webapp.alerts.schedule import Planned, calling, schedule, written_for
from webapp.alerts.selectors import BROKEN_AFTER, channels_held, messages_held
from webapp.alerts.transports import TRANSPORTS
from webapp.alerts.waiting import planner_alone, planner_stop, waiting_free
from webapp.alerts.webhooks import Answer, new_secret
from webapp.config.room import hold, room_check
from webapp.queries.models import Query

PLAN_AT_ONCE = 2_000
OPENED, DIGEST = "alerts.opened", "alerts.digest"
LISTED_IN_ONE_MESSAGE = 100
RETRY_AFTER = [timedelta(seconds=s) for s in (5, 30, 300, 1_800, 7_200, 28_800, 86_400)]
"""Waits after the first, second, ... failed attempt; after the last one the message is given up."""
OLD_SECRET_LIVES = timedelta(hours=24)
MOST_BROWSERS = 10
REST, LONGEST_REST = timedelta(seconds=30), timedelta(minutes=2)
"""A channel with BROKEN_AFTER failures in a row gets nothing for this long, then one message: many
messages for receivers that hang must not take all senders from the other channels."""
AWAY_AFTER = 3
"""After this many failures in a row the receiver counts as unreachable. Fewer may mean
that it rejects one message."""


@transaction.atomic
def notifications_plan(now: datetime | None = None) -> int:
    """Plans for new alerts that are not muted which channels they go to and when; returns how
    many alerts were planned.

    Runs in one process at a time, so that alerts that belong together are grouped; others
    try again at the next tick.
    """
    if not planner_alone():
        return 0
    alerts = list(Alert.objects.select_for_update(skip_locked=True).filter(planned_at=None).order_by("id")[:PLAN_AT_ONCE])
    moment = now or timezone.now()
    if alerts:
        heard = set(calling(alerts))
        routes = routes_of([alert for alert in alerts if alert.pk in heard])
        planned = schedule(routes, written_for(routes), moment)
        Notification.objects.bulk_create(map(_notification, planned), ignore_conflicts=True, batch_size=1000)
        Alert.objects.filter(pk__in=[alert.pk for alert in alerts]).update(planned_at=moment)
    return len(alerts)


def _notification(planned: Planned) -> Notification:
    route = planned.route
    return Notification(
        alert=route.alert,
        channel=route.channel,
        rule_id=route.rule_id,
        after_minutes=route.after_minutes,
        due_at=planned.due_at,
        gathered=planned.gathered,
        group=planned.group,
    )


def deliveries_prepare(now: datetime | None = None) -> int:
    """Makes messages of due notifications within each channel's rate; returns how many."""
    moment = now or timezone.now()
    _needless(moment).delete()
    waiting = Notification.objects.filter(delivery=None, due_at__lte=moment, channel__enabled=True)
    return sum(_prepare(channel_id, moment) for channel_id in waiting.order_by().values_list("channel", flat=True).distinct())


def _needless(now: datetime) -> QuerySet[Notification]:
    """Escalations of alerts that were acknowledged or resolved meanwhile, and notifications of
    alerts that were muted while they waited."""
    done = Q(alert__acknowledged_at__isnull=False) | Q(alert__state=AlertState.RESOLVED)
    waited = Q(gathered=True) | Q(after_minutes__gt=0)
    return Notification.objects.filter(Q(done, after_minutes__gt=0) | Q(waited, alert__mute__isnull=False), delivery=None, due_at__lte=now)


@transaction.atomic
def _prepare(channel_id: int, now: datetime) -> int:
    """One digest of the notifications that wait for it. The others become one message for each
    alert if that stays well within the rate, else one for all."""
    channel = Channel.objects.select_for_update(skip_locked=True, of=("self",)).select_related("owner", "team").filter(pk=channel_id).first()
    if channel is None:
        return 0
    budget = _budget(channel, now)
    due = Notification.objects.filter(channel=channel, delivery=None, due_at__lte=now)
    made = 0
    for waiting, kind in ((due.filter(gathered=True), DIGEST), (due.filter(gathered=False), OPENED)):
        if made < budget and waiting.exists():
            made += _prepare_kind(channel, waiting, kind, budget - made, now)
    return made


def _budget(channel: Channel, now: datetime) -> int:
    """How many messages may be sent to the channel now: within its rate, and within the hourly
    quotas of its owner and its team."""
    left = channel.per_minute - channel.deliveries.filter(created_at__gt=now - timedelta(minutes=1), test=False).count()
    return int(min(left, quota_room("messages", held=partial(messages_held, now=now), user=channel.owner, team=channel.team)))


def _prepare_kind(channel: Channel, due: QuerySet[Notification], kind: str, budget: int, now: datetime) -> int:
    waiting = due.select_related("rule", "alert__query", "alert__feed", "alert__acknowledged_by", "alert__assignee").order_by("id")
    if kind == OPENED and waiting[: budget // 2 + 1].count() <= budget // 2:
        alone = list(waiting)
        for one in alone:
            _make(channel, Notification.objects.filter(pk=one.pk), message([_row_of(one)], kind=kind, count=1, now=now), now)
        return len(alone)
    last = waiting.values_list("pk", flat=True).last()
    rows = due.filter(pk__lte=last)
    gravest = waiting.filter(pk__lte=last).order_by("-alert__rank", "id")
    listed = [_row_of(one) for one in gravest[:LISTED_IN_ONE_MESSAGE]]
    _make(channel, rows, message(listed, kind=kind, count=rows.count(), now=now), now)
    return 1


def _make(channel: Channel, rows: QuerySet[Notification], body: str, now: datetime) -> None:
    rows.update(delivery=Delivery.objects.create(channel=channel, body=body, created_at=now, next_at=now))


def _row_of(notification: Notification) -> dict[str, Any]:
    alert, rule = notification.alert, notification.rule
    by = {"rule": None if rule is None else rule.name, "after_minutes": notification.after_minutes}
    return {**alert_row(alert, query_name=alert.query.name), "feed": alert.feed.name, **by}


def message(alerts: Sequence[dict[str, Any]], *, kind: str, count: int, now: datetime) -> str:
    """The message's JSON text: the type of event, the number of alerts, and the alerts that it
    lists."""
    return json.dumps({"type": kind, "timestamp": now.isoformat(), "data": {"count": count, "alerts": list(alerts)}}, separators=(",", ":"))


def channels_due(now: datetime | None = None) -> list[int]:
    """The channels with a due message and none in flight: a receiver that hangs blocks
    one thread, not all of them."""
    moment = now or timezone.now()
    busy = Delivery.objects.filter(claimed_until__gt=moment, sent_at=None, failed_at=None).values("channel")
    return list(_due(moment).exclude(channel__in=busy).order_by().values_list("channel", flat=True).distinct())


def _due(now: datetime) -> QuerySet[Delivery]:
    awake = Q(channel__not_before=None) | Q(channel__not_before__lte=now)
    due = Delivery.objects.filter(_ready(now), awake, channel__enabled=True)
    # Earlier messages about the same alert are delivered first.
    before = Notification.objects.filter(channel=OuterRef("channel"), delivery__lt=OuterRef("pk"), delivery__sent_at=None, delivery__failed_at=None)
    return due.exclude(Exists(before.filter(alert__notifications__delivery=OuterRef("pk"))))


def _ready(now: datetime) -> Q:
    """What the row of a due message alone shows: not sent, not given up, not claimed."""
    free = Q(claimed_until=None) | Q(claimed_until__lte=now)
    return free & Q(sent_at=None, failed_at=None, next_at__lte=now)


def channel_send(*, channel_id: int, seconds: float = 20.0) -> int:
    """Sends due messages for one channel, those due longest first, for at most about `seconds`;
    returns the number of attempts."""
    attempts = 0
    end = timezone.now() + timedelta(seconds=seconds)
    while (now := timezone.now()) < end:
        due = _due(now).filter(channel=channel_id).select_related("channel").order_by("next_at", "id").first()
        if due is None:
            break
        if _claim(due, now):
            answer = _send(due, now)
            delivery_settle(delivery=due, answer=answer)
            attempts += 1
            if not answer.ok and due.channel.failures >= BROKEN_AFTER:
                break
    return attempts


def _claim(delivery: Delivery, now: datetime) -> bool:
    """Whether this caller alone may send `delivery` now. The attempt is counted before it is made,
    so a crash counts as one.

    The conditions are all on the row itself: PostgreSQL compares these again after it waited for
    another sender's claim. It does not read joined tables and subqueries again.
    """
    unclaimed = Delivery.objects.filter(_ready(now), pk=delivery.pk, attempts=delivery.attempts)
    claimed = unclaimed.update(claimed_until=now + TRANSPORTS[delivery.channel.kind].LONGEST, attempts=F("attempts") + 1)
    if claimed:
        delivery.refresh_from_db()
    return claimed == 1


def _send(delivery: Delivery, now: datetime) -> Answer:
    return TRANSPORTS[delivery.channel.kind].send(delivery, now)


def delivery_settle(*, delivery: Delivery, answer: Answer) -> None:
    """Records the outcome of an attempt: sent, to be retried, or given up. A browser that ended
    its subscription is removed.

    When a receiver is back, messages that failed before are due immediately: an outage of minutes
    must not delay them for hours.
    """
    now = timezone.now()
    channel = Channel.objects.filter(pk=delivery.channel_id)
    delivery.status_code, delivery.error, delivery.claimed_until = answer.status, answer.error, None
    if answer.ok:
        delivery.sent_at = now
        _settle_arrival(delivery, now)
    else:
        if answer.gone and delivery.channel.kind == ChannelKind.PUSH:
            channel.delete()
            return
        if answer.gone:
            channel.update(enabled=False, disabled_reason=Message("The receiver answered 410 Gone."))
            delivery.failed_at = now
        elif delivery.attempts > len(RETRY_AFTER):
            delivery.failed_at = now
        else:
            # Jitter, so that messages that failed together are not retried together.
            delivery.next_at = now + RETRY_AFTER[delivery.attempts - 1] * random.uniform(0.8, 1.2)  # noqa: S311  not a secret
        rest = _rest(delivery.channel.failures + 1) if answer.retry_after is None else answer.retry_after
        channel.update(failures=F("failures") + 1, not_before=None if rest is None else now + rest)
    delivery.save(update_fields=["status_code", "error", "claimed_until", "sent_at", "failed_at", "next_at"])
    delivery.channel.refresh_from_db(fields=["failures", "enabled", "not_before"])


def _rest(failures: int) -> timedelta | None:
    """How long nothing is sent to a receiver that has failed so many times in a row."""
    return None if failures < BROKEN_AFTER else min(REST * (failures - BROKEN_AFTER + 1), LONGEST_REST)


def _settle_arrival(delivery: Delivery, now: datetime) -> None:
    """The receiver takes messages: the channel no longer fails, and what failed is due now."""
    if delivery.channel.failures >= AWAY_AFTER:
        _waiting(delivery.channel_id).exclude(pk=delivery.pk).update(next_at=now)
    Channel.objects.filter(pk=delivery.channel_id).update(failures=0, not_before=None)


def _waiting(channel_id: int) -> QuerySet[Delivery]:
    return Delivery.objects.filter(channel=channel_id, sent_at=None, failed_at=None)


def delivery_retry(*, delivery: Delivery) -> None:
    """Retries a failed message now, even if it was given up, before the channel's others. Raises
    Refused for one that was delivered."""
    now = timezone.now()
    longest_due = _waiting(delivery.channel_id).exclude(pk=delivery.pk).aggregate(at=Min("next_at"))["at"]
    first = min(now, longest_due or now) - timedelta(milliseconds=1)
    unsent = Delivery.objects.filter(pk=delivery.pk, sent_at=None, test=False)
    if not unsent.update(next_at=first, failed_at=None):
        raise refuse("", Message("This message arrived, or is a test: there is nothing to try again."))
    Channel.objects.filter(pk=delivery.channel_id).update(not_before=None)


@transaction.atomic
def channel_rotate(*, channel: Channel) -> str:
    """Makes and returns a new secret; for a day messages carry signatures by both."""
    channel = hold(channel)
    channel.old_secret, channel.old_secret_until = channel.secret, timezone.now() + OLD_SECRET_LIVES
    channel.secret = fresh = new_secret()
    channel.save(update_fields=["secret", "old_secret", "old_secret_until"])
    return fresh


def channel_test(*, channel: Channel) -> Answer:
    """Sends a test message, once and immediately. If it arrives, the channel no longer counts as
    failing. Raises OverQuota."""
    now = timezone.now()
    body = json.dumps({"type": "test", "timestamp": now.isoformat(), "data": {"text": f"A test of the channel {channel.name}."}})
    with transaction.atomic():
        quota_check("messages", user=channel.owner, team=channel.team, more=1, held=messages_held)
        claimed = now + TRANSPORTS[channel.kind].LONGEST
        delivery = Delivery.objects.create(channel=channel, test=True, body=body, attempts=1, claimed_until=claimed)
    answer = _send(delivery, now)
    if answer.gone and channel.kind == ChannelKind.PUSH:
        channel.delete()
        return answer
    delivery.status_code, delivery.error, delivery.claimed_until = answer.status, answer.error, None
    if answer.ok:
        delivery.sent_at = now
        _settle_arrival(delivery, now)
    else:
        delivery.failed_at = now
    delivery.save(update_fields=["status_code", "error", "claimed_until", "sent_at", "failed_at"])
    return answer


@transaction.atomic
def channel_create(*, owner: User, queries: Sequence[Query] = (), team: Team | None = None, **fields: Any) -> Channel:
    """A new channel with a fresh secret. One with `queries` gets only their alerts unless
    `all_queries` is true. Raises OverQuota."""
    quota_check("channels", user=owner, team=team, more=1, held=channels_held)
    fields["team"] = team
    channel = Channel.objects.create(owner=owner, secret=new_secret(), **{"all_queries": not queries, **fields})
    channel.queries.set(queries)
    return channel


@transaction.atomic
def browser_subscribe(*, owner: User, url: str, browser_keys: str, **fields: Any) -> Channel:
    """Makes one of `owner`'s browsers a channel. A browser has one channel: subscribing again keeps
    it, and another user's channel for it is removed.

    Raises Refused when the user has the maximum number.
    """
    browser = _browser(url)
    Channel.objects.filter(browser=browser).exclude(owner=owner).delete()
    known = Channel.objects.filter(browser=browser).first()
    if known is not None:
        return channel_update(channel=known, user=owner, browser_keys=browser_keys, enabled=True)
    full = Message("You have {most} browsers, the maximum for one user: remove one.", most=MOST_BROWSERS)
    room_check(Channel.objects.filter(owner=owner, kind=ChannelKind.PUSH), MOST_BROWSERS, of=owner, full=full)
    return channel_create(owner=owner, kind=ChannelKind.PUSH, url=url, browser_keys=browser_keys, browser=browser, **fields)


def browser_find(*, url: str, browser_keys: str) -> Channel | None:
    """The browser with this subscription; None unless both the address and the keys are right.

    Both are secrets of the browser: with them one could read its messages.
    """
    known = Channel.objects.filter(browser=_browser(url), kind=ChannelKind.PUSH).first()
    return known if known is not None and hmac.compare_digest(known.browser_keys.encode(), browser_keys.encode()) else None


@transaction.atomic
def browser_renew(*, channel: Channel, url: str, browser_keys: str) -> None:
    """Replaces a browser's ended subscription by a new one."""
    Channel.objects.filter(browser=_browser(url)).exclude(pk=channel.pk).delete()
    Channel.objects.filter(pk=channel.pk).update(url=url, browser_keys=browser_keys, browser=_browser(url), failures=0, not_before=None)


def _browser(url: str) -> str:
    return hashlib.sha256(url.encode()).hexdigest()


@transaction.atomic
def channel_update(*, channel: Channel, user: User, queries: Sequence[Query] | None = None, **fields: Any) -> Channel:
    """Changes the given fields; enabling clears the reason why it was disabled. `queries`
    chooses as in channel_create.

    Chosen queries that `user` may not see stay chosen. Raises OverQuota for a team that has its
    maximum of channels.
    """
    with_timing = not fields.keys().isdisjoint(Channel.TIMING)
    if with_timing:
        planner_stop()
    if (team := fields.get("team")) is not None and team != channel.team:
        quota_check("channels", team=team, more=1, held=channels_held)
    if queries is not None:
        chosen = Query.objects.filter(channels=channel)
        hidden = chosen.exclude(pk__in=Query.objects.visible_to(user).values("pk"))
        queries = [*queries, *hidden]
        fields = {"all_queries": not queries, **fields}
    channel = hold(channel)
    before = channel.timing
    for name, value in fields.items():
        setattr(channel, name, value)
    if fields.get("enabled"):
        channel.disabled_reason, channel.failures, channel.not_before = "", 0, None
    channel.save()
    if queries is not None:
        channel.queries.set(queries)
    if with_timing and channel.timing != before:
        waiting_free(channel.notifications.all())
    return channel


def channel_delete(*, channel: Channel) -> None:
    """Removes the channel and its waiting messages."""
    channel.delete()
