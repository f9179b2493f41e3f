"""Alerts and channels in the admin."""

from django.contrib import admin

from webapp.alerts.models import Alert, Channel, Delivery


@admin.register(Alert)
class AlertAdmin(admin.ModelAdmin[Alert]):
    """Read-only: alerts are handled on their page, which notifies everybody."""

    list_display = ("id", "query", "kind", "entities", "severity", "state", "opened_at")
    list_filter = ("state", "severity", "feed")
    show_full_result_count = False

    def has_add_permission(self, request: object) -> bool:
        return False

    def has_change_permission(self, request: object, obj: object = None) -> bool:
        return False


@admin.register(Channel)
class ChannelAdmin(admin.ModelAdmin[Channel]):
    list_display = ("name", "owner", "url", "enabled", "failures")
    list_filter = ("enabled",)
    filter_horizontal = ("queries",)

    def has_add_permission(self, request: object) -> bool:
        return False


@admin.register(Delivery)
class DeliveryAdmin(admin.ModelAdmin[Delivery]):
    list_display = ("id", "channel", "created_at", "attempts", "sent_at", "failed_at", "status_code", "error")
    list_filter = ("channel",)
    show_full_result_count = False

    def has_add_permission(self, request: object) -> bool:
        return False

    def has_change_permission(self, request: object, obj: object = None) -> bool:
        return False
