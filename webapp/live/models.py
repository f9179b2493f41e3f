"""Links that show a live view to someone without an account."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.utils import timezone

from webapp.feeds.models import Feed
from webapp.queries.models import Query


class SharedView(models.Model):
    """A link to the live view of one feed: read-only, until it expires or is revoked. Only the
    SHA-256 of its secret is kept.

    It shows the chosen queries, as far as its author may see them at that moment: it never shows
    more than the author could see.
    """

    feed = models.ForeignKey(Feed, models.CASCADE, related_name="shared_views")
    queries: models.ManyToManyField[Query, models.Model] = models.ManyToManyField(Query, related_name="+")
    maker = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="+")
    name = models.CharField(max_length=100, blank=True, help_text="For whom it is.")
    digest = models.CharField(max_length=64, unique=True, editable=False)
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    expires_at = models.DateTimeField()

    class Meta:
        ordering = ("-created_at",)

    def __str__(self) -> str:
        return f"{self.name or 'link'} to {self.feed.name}"
