"""Lists and objects in a body have a maximum length: each value is checked separately, and each
object is looked up."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NoReturn

from rest_framework import serializers
from rest_framework.relations import MANY_RELATION_KWARGS

from engine.model.faults import MOST_FAULTS
from engine.model.messages import Message

MOST = 1_000


def _check_length(data: Any, most: int) -> None:
    """Checked before the values: the faults of a million values are not listed."""
    if isinstance(data, list | dict) and len(data) > most:
        raise serializers.ValidationError(Message("At most {most:,}; these are {count:,}.", most=most, count=len(data)))


def _each(data: Iterable[Any], value_of: Callable[[Any], Any]) -> list[Any]:
    """The values. Raises ValidationError with faults by their places, as many as are shown."""
    values: list[Any] = []
    faults: dict[Any, Any] = {}
    for place, one in enumerate(data):
        try:
            values.append(value_of(one))
        except serializers.ValidationError as error:
            faults[place] = error.detail
        if len(faults) >= MOST_FAULTS:
            break
    if faults:
        raise serializers.ValidationError(faults)
    return values


class BoundedListField(serializers.ListField):
    """Values, `max_length` of them at most."""

    def __init__(self, *, max_length: int = MOST, **kwargs: Any) -> None:
        super().__init__(max_length=max_length, **kwargs)

    def to_internal_value(self, data: Any) -> list[Any]:
        _check_length(data, self.max_length or MOST)
        return list(super().to_internal_value(data))

    def run_child_validation(self, data: Any) -> list[Any]:
        return _each(data, self.child.run_validation)


class BoundedDictField(serializers.DictField):
    """Values by name, MOST of them at most."""

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        _check_length(data, MOST)
        return dict(super().to_internal_value(data))


class _Several(serializers.ManyRelatedField):
    def to_internal_value(self, data: Any) -> list[Any]:
        _check_length(data, MOST)
        if not isinstance(data, list) or (not data and not self.allow_empty):
            return list(super().to_internal_value(data))
        return _each(data, self.child_relation.to_internal_value)


class _Bounded:
    @classmethod
    def many_init(cls, *args: Any, **kwargs: Any) -> serializers.ManyRelatedField:
        """With `many=True`."""
        of_the_list = {name: value for name, value in kwargs.items() if name in MANY_RELATION_KWARGS}
        each: Any = cls(*args, **kwargs)
        return _Several(child_relation=each, **of_the_list)


class ByKey(_Bounded, serializers.PrimaryKeyRelatedField):  # type: ignore[type-arg]
    """Objects by their keys."""

    def fail(self, key: str, **values: Any) -> NoReturn:
        if key == "does_not_exist":
            raise serializers.ValidationError(Message("There is none with the id {id} that you may see.", id=repr(values["pk_value"])))
        raise serializers.ValidationError(Message("An id: a whole number."))

    def to_internal_value(self, data: Any) -> Any:
        """The object. Django would read 1.5 as 1."""
        if isinstance(data, float) and not data.is_integer():
            self.fail("incorrect_type", data_type=type(data).__name__)
        return super().to_internal_value(data)


class ByName(_Bounded, serializers.SlugRelatedField):  # type: ignore[type-arg]
    """Objects by a field of theirs."""
