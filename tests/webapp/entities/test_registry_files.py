"""Registry files made to overload the server, or to break it."""

from __future__ import annotations

import json
import time

import pytest

from engine.model.faults import Refused
from webapp.entities.registry_files import read_registry


def geojson(**properties: str) -> str:
    written = ", ".join(f'"{name}": {value}' for name, value in properties.items())
    return f'{{"type": "FeatureCollection", "features": [{{"properties": {{{written}}}}}]}}'


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (geojson(entity="9" * 5_000), "is not GeoJSON"),
        (geojson(entity='"\\ud800"'), "halves of characters"),
        (geojson(entity='"a"', k='"\\u0000"'), "control characters"),
        (geojson(entity='"a"', k="[" * 20_000 + "]" * 20_000), "is not GeoJSON"),
        ("entity" + ",a" * 500_000 + "\n" + "e\n" * 40_000, "at most 200 columns"),
    ],
)
def test_an_invalid_registry_file_is_refused_at_once(text: str, words: str) -> None:
    began = time.process_time()
    with pytest.raises(Refused) as refused:
        read_registry(text.encode())
    assert words in refused.value.faults[0].message and len(refused.value.faults[0].message) < 1_000
    assert time.process_time() - began < 2.0


def test_the_number_of_attributes_in_a_registry_is_limited() -> None:
    features = [{"properties": {"entity": f"e{n}", **{f"k{n}-{m}": "x" for m in range(49)}}} for n in range(5)]
    with pytest.raises(Refused, match="different attributes"):
        read_registry(json.dumps({"type": "FeatureCollection", "features": features}).encode())
    assert len(read_registry(json.dumps({"type": "FeatureCollection", "features": features[:4]}).encode())) == 4
