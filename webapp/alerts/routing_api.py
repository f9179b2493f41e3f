"""`routing-rules/`: which alerts go to which channels."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django.utils import timezone
from django.utils.functional import cached_property
from drf_spectacular.utils import OpenApiExample, OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from engine.model.messages import Message
from webapp.accounts.authentication import person
from webapp.accounts.models import Membership, Team, User
from webapp.accounts.owned import OwnedSerializer, OwnedView
from webapp.alerts import rules
from webapp.alerts.dry_run import DryRun, dry_run
from webapp.alerts.models import Channel, RoutingRule, Shift
from webapp.alerts.reach import rule_warnings
from webapp.alerts.routing import terms
from webapp.alerts.timing import timing_faults
from webapp.config.boxes import whole_between
from webapp.config.openapi import schema_of
from webapp.config.related import BoundedListField, ByKey, ByName
from webapp.feeds.models import Region
from webapp.feeds.of_feed import FeedNameField
from webapp.queries.models import Query

HOURS = OpenApiParameter("hours", int, description="1 to 168; default 24")
MOST_TAGS = 100
LONGEST_WAIT_MINUTES = 7 * 24 * 60
NIGHT = {"name": "Night shift", "min_severity": "high", "from_time": "22:00", "until_time": "06:00", "zone": "Europe/Athens", "channels": [2]}
WHERE = ("channels", "teams", "people", "shifts")


class RoutingRuleSerializer(OwnedSerializer):
    """Which alerts go where; empty conditions always hold."""

    feed = FeedNameField(required=False, allow_null=True)
    queries = ByKey(many=True, required=False, queryset=Query.objects.none())
    regions = ByKey(many=True, required=False, queryset=Region.objects.none())
    days = BoundedListField(child=serializers.IntegerField(min_value=0, max_value=6), required=False, max_length=7, help_text="0: Monday")
    channels = ByKey(many=True, required=False, queryset=Channel.objects.none())
    teams = ByKey(many=True, required=False, queryset=Team.objects.none())
    people = ByName(many=True, required=False, slug_field="username", queryset=User.objects.none())
    shifts = ByKey(many=True, required=False, queryset=Shift.objects.none(), help_text="Who is on call in them.")
    after_minutes = serializers.IntegerField(required=False, min_value=0, max_value=LONGEST_WAIT_MINUTES)
    warning = serializers.SerializerMethodField(help_text="For users who may change the rule: why it reaches nobody; else empty.")

    class Meta:
        model = RoutingRule
        fields = (
            "id", "name", "enabled", "feed", "queries", "tags", "regions", "min_severity", "days", "from_time", "until_time",
            "after_minutes", *RoutingRule.TIMING, "channels", "teams", "people", "shifts", "warning", *OwnedSerializer.OWNED, "created_at",
        )  # fmt: skip
        read_only_fields = ("created_at",)
        extra_kwargs = {"tags": {"max_length": MOST_TAGS}}

    def get_fields(self) -> dict[str, Any]:
        fields: dict[str, Any] = super().get_fields()
        if request := self.context.get("request"):
            user = request.user
            # Without a user while the schema is generated.
            memberships = Membership.objects.filter(user=user.pk)
            teams = Team.objects.all() if user.is_superuser else Team.objects.filter(pk__in=memberships.values("team"))
            fields["queries"].child_relation.queryset = Query.objects.visible_to(user).filter(deleted_at=None)
            fields["regions"].child_relation.queryset = Region.objects.visible_to(user)
            fields["channels"].child_relation.queryset = Channel.objects.editable_by(user)
            fields["shifts"].child_relation.queryset = Shift.objects.visible_to(user)
            fields["teams"].child_relation.queryset = teams
            fields["people"].child_relation.queryset = User.objects.filter(is_active=True, teams__in=teams.values("pk")).distinct()
        return fields

    def get_warning(self, rule: RoutingRule) -> str:
        return self._warnings.get(rule.pk, "")

    @cached_property
    def _warnings(self) -> dict[int, str]:
        """For all rules on the page, read together."""
        shown = self.instance if self.parent is None else self.parent.instance
        rules = [shown] if isinstance(shown, RoutingRule) else list(shown or ())
        return rule_warnings(rules=rules, user=self.context["request"].user, now=timezone.now())

    def validate(self, attributes: dict[str, Any]) -> dict[str, Any]:
        rule: Any = self.instance
        stored = {} if rule is None else {name: getattr(rule, name) for name in RoutingRule.TIMING}
        if faults := timing_faults({**stored, **attributes}):
            raise serializers.ValidationError(faults)
        if not any(attributes.get(name, [] if rule is None else getattr(rule, name).all()) for name in WHERE):
            raise serializers.ValidationError({"channels": Message("Name a channel, a team, a user or a shift that the alerts are sent to.")})
        return attributes


class RoutingRuleView(OwnedView):
    """Rules by which alerts go to channels, in addition to alerts that a channel carries without a
    rule."""

    queryset = RoutingRule.objects.all()
    serializer_class = RoutingRuleSerializer

    def get_queryset(self) -> QuerySet[Any]:
        return rules.rule_list(user=self.request.user)

    @extend_schema(examples=[OpenApiExample("At night", NIGHT, request_only=True)])
    def create(self, request: Request) -> Response:
        self.check_may_make()
        rule = rules.rule_save(user=person(request), **self._given(request))
        return Response(self.represent(rule), status=201)

    def partial_update(self, request: Request, pk: int) -> Response:
        rule = self.get_editable()
        serializer = self.get_serializer(rule, data=request.data, partial=True)
        serializer.is_valid(raise_exception=True)
        return Response(self.represent(rules.rule_save(user=person(request), rule=rule, **serializer.validated_data)))

    @extend_schema(responses={204: None})
    def destroy(self, request: Request, pk: int) -> Response:
        self.get_editable().delete()
        return Response(status=204)

    @extend_schema(summary="Where the alerts of the last hours would go", parameters=[HOURS], responses={200: schema_of(DryRun)})
    def dry_run(self, request: Request) -> Response:
        return Response(dry_run(user=person(request), hours=_hours(request), now=timezone.now()))

    @extend_schema(summary="Where a rule that is not saved would send them", parameters=[HOURS], responses={200: schema_of(DryRun)})
    def try_out(self, request: Request) -> Response:
        self.check_may_make()
        fields = {name: value for name, value in self._given(request).items() if name not in ("enabled", "team", "public")}
        rule = terms(owner=person(request), **fields)
        return Response(dry_run(user=person(request), hours=_hours(request), now=timezone.now(), rule=rule))

    def _given(self, request: Request) -> dict[str, Any]:
        serializer = self.get_serializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        return dict(serializer.validated_data)


def _hours(request: Request) -> int:
    return whole_between(request.query_params.get("hours"), "hours", 1, 168, usual=24)
