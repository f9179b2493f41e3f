"""Users and teams in the admin."""

from django.contrib import admin
from django.contrib.auth.admin import UserAdmin

from webapp.accounts.models import ApiToken, Membership, Team, User


class MembershipInline(admin.TabularInline[Membership, Team]):
    model = Membership
    extra = 0
    autocomplete_fields = ("user",)


@admin.register(User)
class VedetteUserAdmin(UserAdmin[User]):
    fieldsets = (*(UserAdmin.fieldsets or ()), ("Display", {"fields": ("time_zone", "units")}), ("Quotas", {"fields": ("quotas",)}))


@admin.register(Team)
class TeamAdmin(admin.ModelAdmin[Team]):
    search_fields = ("name",)
    inlines = (MembershipInline,)


@admin.register(ApiToken)
class ApiTokenAdmin(admin.ModelAdmin[ApiToken]):
    """Tokens can be viewed and revoked here, but not created: only their owner sees the secret."""

    list_display = ("name", "user", "prefix", "scopes", "expires_at", "last_used_at")
    list_filter = ("user",)
    readonly_fields = ("user", "name", "prefix", "scopes", "created_at", "expires_at", "last_used_at")

    def has_add_permission(self, request: object) -> bool:
        return False
