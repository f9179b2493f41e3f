"""Feeds in the admin: read-only, except for owner and team. Settings that queries depend on are
changed on the feed's page."""

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


class ReadOnlyAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    """Rows that the system writes."""

    show_full_result_count = False

    def has_add_permission(self, request: object) -> bool:
        return False

    def has_change_permission(self, request: object, obj: object = None) -> bool:
        return False


@admin.register(DeadLetter)
class DeadLetterAdmin(ReadOnlyAdmin):
    list_display = ("id", "feed", "reason", "detail", "source", "received_at")
    list_filter = ("feed", "reason")


@admin.register(IngestReceipt)
class IngestReceiptAdmin(ReadOnlyAdmin):
    list_display = ("id", "feed", "key", "first_seq", "last_seq", "created_at")
    list_filter = ("feed",)
