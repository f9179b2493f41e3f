"""Feeds in the admin: for looking and for changing hands. Whatever queries depend on is changed on its page."""

from django.contrib import admin

from webapp.feeds.models import DeadLetter, Feed, IngestReceipt, Region


@admin.register(Feed)
class FeedAdmin(admin.ModelAdmin[Feed]):
    list_display = ("name", "title", "crs", "time", "lateness", "owner", "team", "public")
    search_fields = ("name", "title")
    readonly_fields = ("name", "crs", "time", "tick", "lateness", "dedupe", "columns", "query_version", "created_at")

    def has_add_permission(self, request: object) -> bool:
        return False

    def has_delete_permission(self, request: object, obj: object = None) -> bool:
        return False


@admin.register(Region)
class RegionAdmin(admin.ModelAdmin[Region]):
    list_display = ("name", "feed", "owner", "team", "public", "updated_at")
    list_filter = ("feed",)
    search_fields = ("name",)
    readonly_fields = ("feed", "name", "geometry", "bbox", "created_at", "updated_at")

    def has_add_permission(self, request: object) -> bool:
        return False

    def has_delete_permission(self, request: object, obj: object = None) -> bool:
        return False


class LookOnly(admin.ModelAdmin):  # type: ignore[type-arg]
    """Rows that the machinery writes."""

    show_full_result_count = False

    def has_add_permission(self, request: object) -> bool:
        return False

    def has_change_permission(self, request: object, obj: object = None) -> bool:
        return False


@admin.register(DeadLetter)
class DeadLetterAdmin(LookOnly):
    list_display = ("id", "feed", "reason", "detail", "source", "received_at")
    list_filter = ("feed", "reason")


@admin.register(IngestReceipt)
class IngestReceiptAdmin(LookOnly):
    list_display = ("id", "feed", "key", "first_seq", "last_seq", "created_at")
    list_filter = ("feed",)
