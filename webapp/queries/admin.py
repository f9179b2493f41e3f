"""Queries in the admin: read-only, except for owner and team. They are edited on their page, which
checks and makes versions."""

from django.contrib import admin

from webapp.queries.models import Query, QueryVersion


class VersionInline(admin.TabularInline[QueryVersion, Query]):
    model = QueryVersion
    extra = 0
    can_delete = False
    fields = readonly_fields = ("version", "from_feed_version", "to_feed_version", "created_at", "created_by")

    def has_add_permission(self, request: object, obj: object = None) -> bool:
        return False


@admin.register(Query)
class QueryAdmin(admin.ModelAdmin[Query]):
    list_display = ("name", "feed", "family", "version", "enabled", "severity", "owner", "team", "public", "deleted_at")
    list_filter = ("feed", "family", "enabled")
    search_fields = ("name",)
    readonly_fields = ("feed", "name", "family", "specification", "version", "enabled", "regions", "alert_kinds", "created_at", "deleted_at")
    inlines = (VersionInline,)

    def has_add_permission(self, request: object) -> bool:
        return False

    def has_delete_permission(self, request: object, obj: object = None) -> bool:
        return False
