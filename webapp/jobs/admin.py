"""Jobs and the heads of feeds in the admin: read-only. They are started and stopped on the page of
feeds and jobs."""

from django.contrib import admin

from webapp.jobs.models import FeedHead, Job, JobEvent


class Watched(admin.ModelAdmin):  # type: ignore[type-arg]
    """Rows that only processes write."""

    show_full_result_count = False

    def has_add_permission(self, request: object) -> bool:
        return False

    def has_change_permission(self, request: object, obj: object = None) -> bool:
        return False

    def has_delete_permission(self, request: object, obj: object = None) -> bool:
        return False


@admin.register(Job)
class JobAdmin(Watched):
    list_display = ("name", "desired_state", "observed_state", "epoch", "restarts", "heartbeat", "last_error")


@admin.register(JobEvent)
class JobEventAdmin(Watched):
    list_display = ("at", "job", "kind", "text")
    list_filter = ("kind", "job")


@admin.register(FeedHead)
class FeedHeadAdmin(Watched):
    list_display = ("feed", "job", "last_seq", "outbox_seq", "watermark", "processed", "duplicates", "late", "batch_ms", "updated_at")
