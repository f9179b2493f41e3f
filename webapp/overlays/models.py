"""Overlays of feeds."""

from __future__ import annotations

from django.db import models
from django.utils import timezone

from webapp.config.documents import DocumentField
from webapp.feeds.models import NO_CONTROLS, Feed


class Overlay(models.Model):
    """A GeoJSON FeatureCollection in the feed's own coordinates; users who see the feed see it,
    users who may change the feed may change it."""

    feed = models.ForeignKey(Feed, models.CASCADE, related_name="overlays")
    name = models.CharField(max_length=100, validators=[NO_CONTROLS])
    document = DocumentField()
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        ordering = ("name",)
        constraints = [models.UniqueConstraint(fields=["feed", "name"], name="overlay_name_in_feed")]

    def __str__(self) -> str:
        return f"{self.feed.name}/{self.name}"
