"""The common base of serializers of bodies.

Unknown keys are faults: if they were ignored, they would seem to be accepted. A user who misspells
`dry_run` would remove the objects instead of listing them.
"""

from __future__ import annotations

from typing import Any, ClassVar, NoReturn

from django.http import QueryDict
from rest_framework import serializers

from engine.model.faults import unknown_among, unknown_name
from engine.model.messages import Message


class OneOf(serializers.ChoiceField):
    """One of some words; a refusal names the nearest one, and all."""

    def fail(self, key: str, **values: Any) -> NoReturn:
        if key == "invalid_choice":
            raise serializers.ValidationError(unknown_name(values["input"], self.choices, what=Message("value")))
        super().fail(key, **values)


class KnownKeys(serializers.Serializer[Any]):
    """Base of the serializers of bodies; of a `ModelSerializer` the first base."""

    serializer_choice_field: ClassVar[type[serializers.Field[Any, Any, Any, Any]]] = OneOf

    def to_internal_value(self, data: Any) -> Any:
        """The checked values. Each unknown key is a fault, with the nearest known key; each key
        that a form has twice is one too."""
        refused: dict[str, Any] = {}
        if isinstance(data, dict):
            writable = [name for name, field in self.fields.items() if not field.read_only]
            refused = {key: [unknown_name(key, writable, what=Message("key"))] for key in unknown_among(data, self.fields)}
        if isinstance(data, QueryDict):
            doubled = [key for key, values in data.lists() if len(values) > 1 and not self._is_list(key)]
            refused |= {key: [Message("The key {name} is here twice: keep one of them.", name=repr(key))] for key in doubled}
        try:
            values = super().to_internal_value(data)
        except serializers.ValidationError as error:
            if isinstance(error.detail, dict):
                raise serializers.ValidationError({**error.detail, **refused}) from error
            raise
        if refused:
            raise serializers.ValidationError(refused)
        return values

    def _is_list(self, key: str) -> bool:
        return isinstance(self.fields.get(key), serializers.ListField | serializers.ManyRelatedField)
