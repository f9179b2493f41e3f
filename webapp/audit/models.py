"""Who did what to which object, when and from where."""

from __future__ import annotations

from django.db import models
from django.db.models.functions import Now


class Outcome(models.TextChoices):
    DONE = "done", "Done"
    REFUSED = "refused", "Refused"
    FAILED = "failed", "Failed"


class AuthenticationMethod(models.TextChoices):
    """How the actor was authenticated."""

    SESSION = "session", "Session"
    TOKEN = "token", "Token"
    NOBODY = "nobody", "Not logged in"
    COMMAND = "command", "Command on the server"


class Entry(models.Model):
    """One action. Written once: the application's role in the database may add and read entries,
    never change or delete them.

    No foreign keys: an entry outlives the users, teams and objects that it names.
    """

    at = models.DateTimeField(db_default=Now(), editable=False)
    actor = models.BigIntegerField(null=True, help_text="Id of the user.")
    actor_name = models.CharField(max_length=150, blank=True)
    means = models.CharField(max_length=10, choices=AuthenticationMethod.choices)
    token = models.CharField(max_length=16, blank=True, help_text="What the token begins with.")
    address = models.GenericIPAddressField(null=True)
    action = models.CharField(max_length=100, help_text="Kind of object and verb, such as query.change.")
    outcome = models.CharField(max_length=10, choices=Outcome.choices)
    status = models.PositiveSmallIntegerField(null=True, help_text="Of the HTTP response.")
    object_type = models.CharField(max_length=50, blank=True)
    object_id = models.CharField(max_length=100, blank=True)
    object_name = models.CharField(max_length=200, blank=True)
    team = models.BigIntegerField(null=True, help_text="Id of the team that the object belonged to.")
    request = models.CharField(max_length=300, blank=True, help_text="Method and path, or the command.")
    detail = models.JSONField(default=dict)

    class Meta:
        ordering = ("-id",)
        verbose_name_plural = "entries"
        indexes = [
            models.Index(fields=["at"], name="audit_by_time"),
            models.Index(fields=["actor", "-id"], name="audit_of_actor"),
            models.Index(fields=["object_type", "object_id", "-id"], name="audit_of_object"),
            models.Index(fields=["team", "-id"], name="audit_of_team"),
        ]

    def __str__(self) -> str:
        return f"{self.at} {self.actor_name}: {self.action} {self.object_name or self.object_id} ({self.outcome})"
