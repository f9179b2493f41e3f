"""Sentences of Django REST framework and allauth whose German addresses the reader as "du": ours,
in the catalogue, take precedence."""

from __future__ import annotations

from django.utils.translation import gettext_noop

TEXTS = (
    gettext_noop("Ensure that there are no more than {max_decimal_places} decimal places."),
    gettext_noop("Ensure that there are no more than {max_digits} digits in total."),
    gettext_noop("Ensure this field has at least {min_length} characters."),
    gettext_noop("Ensure this field has no more than {max_length} characters."),
    gettext_noop("Ensure this value is greater than or equal to {min_value}."),
    gettext_noop("Ensure this value is less than or equal to {max_value}."),
    gettext_noop("Enter a valid URL."),
    gettext_noop("Enter a valid email address."),
    gettext_noop("You must type the same password each time."),
)
