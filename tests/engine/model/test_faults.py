"""Messages about unknown names are short, however many names are known."""

from __future__ import annotations

from engine.model.faults import LISTED_NAMES, unknown_name
from engine.model.messages import Message

REGION = Message("region")
BERTHS = [f"berth {number}" for number in range(1, 701)]


def test_few_known_names_are_all_listed() -> None:
    names = BERTHS[:LISTED_NAMES]
    assert unknown_name("lock", names, what=REGION).partition("Known: ")[2].split(", ") == sorted(names)


def test_of_many_known_names_the_nearest_are_listed_and_the_others_counted() -> None:
    said = unknown_name("Berth 321", BERTHS, what=REGION)
    assert said == "unknown region 'Berth 321'; did you mean one of 'berth 321', 'berth 32', 'berth 31'? 700 are known"


def test_of_many_known_names_some_are_listed_if_no_name_is_near() -> None:
    said = unknown_name("quay", [*BERTHS, *map(str, range(1_000))], what=REGION)
    assert said == "unknown region 'quay'. 1,700 are known, such as 0, 1, 10"
