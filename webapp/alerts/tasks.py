"""Short tasks that send alerts; they may run twice or be lost: the next tick does the same."""

from celery import shared_task

from webapp.alerts import deliveries, mutes, shifts


@shared_task  # type: ignore[untyped-decorator]
def deliver() -> None:
    """Plans and prepares new notifications, and starts sending for each channel separately: a slow
    receiver delays no other channel."""
    mutes.mutes_turn()
    deliveries.notifications_plan()
    deliveries.deliveries_prepare()
    for channel_id in deliveries.channels_due():
        send.apply_async(args=[channel_id], expires=10)


@shared_task  # type: ignore[untyped-decorator]
def warn_of_shifts() -> None:
    """Notifies owners of shifts in time when nobody will be on call."""
    shifts.shifts_warn()


@shared_task  # type: ignore[untyped-decorator]
def send(channel_id: int) -> None:
    """Sends what is due for one channel."""
    deliveries.channel_send(channel_id=channel_id)
