"""Lists of other objects in a body: each is looked up by itself, so they are not without end."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers
from rest_framework.relations import MANY_RELATION_KWARGS

MOST = 1_000


class _Several(serializers.ManyRelatedField):
    def to_internal_value(self, data: Any) -> list[Any]:
        if isinstance(data, list) and len(data) > MOST:
            raise serializers.ValidationError(f"At most {MOST:,}; these are {len(data):,}.")
        return list(super().to_internal_value(data))


class _Bounded:
    @classmethod
    def many_init(cls, *args: Any, **kwargs: Any) -> serializers.ManyRelatedField:
        """With `many=True`."""
        of_the_list = {name: value for name, value in kwargs.items() if name in MANY_RELATION_KWARGS}
        each: Any = cls(*args, **kwargs)
        return _Several(child_relation=each, **of_the_list)


class ByKey(_Bounded, serializers.PrimaryKeyRelatedField):  # type: ignore[type-arg]
    """Objects by their keys."""


class ByName(_Bounded, serializers.SlugRelatedField):  # type: ignore[type-arg]
    """Objects by a field of theirs."""
