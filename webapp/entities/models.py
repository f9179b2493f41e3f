"""Users' records, notes and watches on the entities of a feed."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.utils import timezone

from webapp.config.documents import DocumentField
from webapp.feeds.models import NO_CONTROLS, Feed

NAME_LENGTH = 100
ENTITY_LENGTH = 500
NOTE_LENGTH = 4000


class Record(models.Model):
    """An entity in a feed's registry: a readable name, and attributes that its rows do not have."""

    feed = models.ForeignKey(Feed, models.CASCADE, related_name="records")
    entity = models.CharField(max_length=ENTITY_LENGTH, validators=[NO_CONTROLS])
    name = models.CharField(max_length=NAME_LENGTH, blank=True, validators=[NO_CONTROLS])
    attributes = DocumentField(default=dict, blank=True, help_text="Attribute name to text.")
    learned = DocumentField(default=dict, blank=True, help_text="What a stream last said, with its name: what differs from it was written by people.")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["feed", "entity"], name="one_record_for_an_entity")]

    def __str__(self) -> str:
        return f"{self.feed.name}/{self.entity}"


class Note(models.Model):
    """A note about an entity; everybody who sees the feed can read it."""

    feed = models.ForeignKey(Feed, models.CASCADE, related_name="notes")
    entity = models.CharField(max_length=ENTITY_LENGTH)
    author = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="+")
    text = models.TextField(max_length=NOTE_LENGTH)
    at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        ordering = ("-id",)
        indexes = [models.Index(fields=["feed", "entity", "-id"], name="notes_of_entity")]

    def __str__(self) -> str:
        return f"{self.feed.name}/{self.entity} #{self.pk}"


class Watch(models.Model):
    """A user's request to be notified when an entity reports again: a row of it beyond `since`."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="watches")
    feed = models.ForeignKey(Feed, models.CASCADE, related_name="+")
    entity = models.CharField(max_length=ENTITY_LENGTH)
    position = models.BigIntegerField(help_text="Rows of the log before this one have been looked at.")
    reported_t = models.BigIntegerField(null=True, help_text="The time of its first row after the watch began; null while it is silent.")
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        ordering = ("-id",)
        constraints = [models.UniqueConstraint(fields=["user", "feed", "entity"], name="one_watch_for_a_person")]

    def __str__(self) -> str:
        return f"{self.user_id} waits for {self.feed.name}/{self.entity}"
