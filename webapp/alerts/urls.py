"""Addresses below /api/v1/."""

from django.urls import path

from webapp.alerts.api import AlertView
from webapp.alerts.channels_api import ChannelView
from webapp.alerts.mutes_api import MuteView
from webapp.alerts.routing_api import RoutingRuleView
from webapp.alerts.saved_views_api import SavedViewView
from webapp.alerts.shifts_api import ShiftView, TurnView

urlpatterns = [
    path("alerts/", AlertView.as_view({"get": "list"}), name="api-alerts"),
    path("alerts/summary", AlertView.as_view({"get": "summary"}), name="api-alert-summary"),
    path("alerts/bulk", AlertView.as_view({"post": "bulk"}), name="api-alert-bulk"),
    path("alerts/<int:pk>/", AlertView.as_view({"get": "retrieve"}), name="api-alert"),
    path("alerts/<int:pk>/acknowledge", AlertView.as_view({"post": "acknowledge"}), name="api-alert-acknowledge"),
    path("alerts/count", AlertView.as_view({"get": "count"}), name="api-alert-count"),
    path("alerts/groups", AlertView.as_view({"get": "groups"}), name="api-alert-groups"),
    path("alerts/numbers", AlertView.as_view({"get": "numbers"}, throttle_action="export"), name="api-alert-numbers"),
    path("alerts/export", AlertView.as_view({"get": "export"}, throttle_action="export"), name="api-alert-export"),
    path("alerts/<int:pk>/feedback", AlertView.as_view({"post": "feedback"}), name="api-alert-feedback"),
    path("alerts/<int:pk>/seen", AlertView.as_view({"post": "seen"}), name="api-alert-seen"),
    path("alerts/<int:pk>/assign", AlertView.as_view({"post": "assign"}), name="api-alert-assign"),
    path("alerts/<int:pk>/reopen", AlertView.as_view({"post": "reopen"}), name="api-alert-reopen"),
    path("alerts/<int:pk>/resolve", AlertView.as_view({"post": "resolve"}), name="api-alert-resolve"),
    path("alerts/<int:pk>/comments", AlertView.as_view({"post": "comment"}), name="api-alert-comments"),
    path("alert-views/", SavedViewView.as_view({"get": "list", "post": "create"}), name="api-views"),
    path("alert-views/<int:pk>/", SavedViewView.as_view({"get": "retrieve", "patch": "partial_update", "delete": "destroy"}), name="api-view"),
    path("mutes/", MuteView.as_view({"get": "list", "post": "create"}), name="api-mutes"),
    path("mutes/<int:pk>/", MuteView.as_view({"get": "retrieve", "delete": "destroy"}), name="api-mute"),
    path("routing-rules/", RoutingRuleView.as_view({"get": "list", "post": "create"}), name="api-rules"),
    path("routing-rules/dry-run", RoutingRuleView.as_view({"get": "dry_run", "post": "try_out"}, throttle_action="export"), name="api-rules-dry-run"),
    path("routing-rules/<int:pk>/", RoutingRuleView.as_view({"get": "retrieve", "patch": "partial_update", "delete": "destroy"}), name="api-rule"),
    path("shifts/", ShiftView.as_view({"get": "list", "post": "create"}), name="api-shifts"),
    path("shifts/<int:pk>/", ShiftView.as_view({"get": "retrieve", "patch": "partial_update", "delete": "destroy"}), name="api-shift"),
    path("shifts/<int:shift>/turns/", TurnView.as_view({"get": "list", "post": "create"}), name="api-shift-turns"),
    path("shifts/<int:shift>/turns/<int:pk>/", TurnView.as_view({"patch": "partial_update", "delete": "destroy"}), name="api-shift-turn"),
    path("channels/", ChannelView.as_view({"get": "list", "post": "create"}), name="api-channels"),
    path("channels/reach", ChannelView.as_view({"get": "reach"}), name="api-channels-reach"),
    path("channels/push-key", ChannelView.as_view({"get": "push_key"}), name="api-push-key"),
    path(
        "channels/push-renewal",
        # By the worker of a browser, which has neither a page's CSRF token nor,
        # perhaps, a session any more.
        ChannelView.as_view({"post": "push_renewal"}, authentication_classes=(), permission_classes=(), throttle_action="trial"),
        name="api-push-renewal",
    ),
    path("channels/<int:pk>/", ChannelView.as_view({"get": "retrieve", "patch": "partial_update", "delete": "destroy"}), name="api-channel"),
    path("channels/<int:pk>/rotate", ChannelView.as_view({"post": "rotate"}), name="api-channel-rotate"),
    path("channels/<int:pk>/test", ChannelView.as_view({"post": "test"}, throttle_action="webhook-test"), name="api-channel-test"),
    path("channels/<int:pk>/deliveries", ChannelView.as_view({"get": "deliveries"}), name="api-channel-deliveries"),
    path("channels/<int:pk>/deliveries/<int:delivery>/retry", ChannelView.as_view({"post": "retry"}), name="api-channel-delivery-retry"),
]
