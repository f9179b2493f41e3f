"""What must be set before anything is served."""

from typing import Any

from django.conf import settings
from django.core.checks import Error, Tags, register


@register(Tags.security)
def secret_key_is_given(**_: Any) -> list[Error]:
    """Sessions signed with a key of one process would end with it and fail in every other process."""
    if settings.SECRET_KEY_GIVEN or settings.DEBUG:
        return []
    return [Error("SECRET_KEY is not set.", hint="Set SECRET_KEY to 50 random characters or more in the environment.", id="vedette.E001")]
