"""All addresses of the site."""

from django.contrib import admin
from django.urls import URLPattern, URLResolver, include, path
from django.views.generic import RedirectView
from drf_spectacular.views import SpectacularAPIView

from webapp.accounts.views import admin_login_redirect
from webapp.alerts.views import acknowledge, alerts, numbers, open_message
from webapp.audit.views import audit
from webapp.config.opened_links import opening_page
from webapp.entities.views import entity, region
from webapp.feeds.plan import plan
from webapp.feeds.views import feed_new, feeds, regions
from webapp.jobs.views import healthz
from webapp.live.views import live, open_shared, shared, shared_plan
from webapp.queries.views import queries, query, query_new

api = [
    path("", include("webapp.accounts.urls")),
    path("", include("webapp.feeds.urls")),
    path("", include("webapp.connectors.urls")),
    path("", include("webapp.queries.urls")),
    path("", include("webapp.detections.urls")),
    path("", include("webapp.alerts.urls")),
    path("", include("webapp.jobs.urls")),
    path("", include("webapp.live.urls")),
    path("", include("webapp.demo.urls")),
    path("", include("webapp.entities.urls")),
    path("", include("webapp.overlays.urls")),
    path("", include("webapp.audit.urls")),
]

urlpatterns: list[URLPattern | URLResolver] = [
    path("", live, name="live"),
    path("shared/", opening_page(open_shared), name="shared"),
    path("shared/<int:pk>/", shared, name="shared-view"),
    path("shared/<int:pk>/plan", shared_plan, name="shared-plan"),
    path("queries/", queries, name="queries"),
    path("queries/new", query_new, name="query-new"),
    path("queries/<int:pk>", query, name="query"),
    path("alerts/", alerts, name="alerts"),
    path("acknowledge/", opening_page(open_message), name="acknowledge"),
    path("acknowledge/<int:pk>/", acknowledge, name="acknowledge-message"),
    path("alerts/numbers/", numbers, name="alert-numbers"),
    path("alerts/<int:pk>", alerts, name="alert"),
    path("regions/", regions, name="regions"),
    path("regions/<int:pk>", region, name="region"),
    path("feeds/", feeds, name="feeds"),
    path("feeds/new", feed_new, name="feed-new"),
    path("feeds/<slug:name>/plan", plan, name="feed-plan"),
    path("feeds/<slug:name>/entity", entity, name="feed-entity"),
    path("audit/", audit, name="audit"),
    path("", include("webapp.accounts.page_urls")),
    path("healthz", healthz, name="healthz"),
    path("api/schema/", SpectacularAPIView.as_view(), name="api-schema"),
    path("api/v1/", include(api)),
    # The admin has no log-in and no change of password: they would bypass the
    # limits and the second factor.
    path("admin/login/", admin_login_redirect, name="admin-login"),
    path("admin/password_change/", RedirectView.as_view(pattern_name="account_change_password"), name="admin-password"),
    path("admin/", admin.site.urls),
]
handler400 = "webapp.config.errors.bad_request"
handler403 = "webapp.config.errors.permission_denied"
handler404 = "webapp.config.errors.not_found"
handler500 = "webapp.config.errors.server_error"
