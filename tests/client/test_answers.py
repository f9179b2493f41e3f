"""Following the answers of a query."""

from __future__ import annotations

from typing import Any

from vedette.answers import Answers

QUERY = {"feed": "harbour", "id": 7}


class Server:
    """A feed with the changes up to `seq`."""

    def __init__(self) -> None:
        self.seq = 4

    def get(self, path: str, *, after: int = 0, **_: Any) -> dict[str, Any]:
        if path == "feeds/harbour/":
            return {"head": {"outbox_seq": self.seq}}
        assert after < self.seq, "it would wait"
        return {"results": [change(seq) for seq in range(after + 1, self.seq + 1)], "seq": self.seq, "more": False}


def change(seq: int) -> dict[str, Any]:
    row = {"id": f"a{seq}", "kind": "in", "entities": ["b"], "value": None, "start": 1, "end": 1}
    return row | {"weight": 1, "version": 1, "evidence": [], "detected_at": 1, "seq": seq}


def test_answers_that_become_known_before_the_loop_begins_are_followed() -> None:
    server = Server()
    answers = Answers(server, QUERY)  # type: ignore[arg-type]
    server.seq = 6
    found = iter(answers)
    assert [next(found).id, next(found).id] == ["a5", "a6"]


def test_following_continues_after_a_number() -> None:
    assert next(iter(Answers(Server(), QUERY, after=2))).id == "a3"  # type: ignore[arg-type]
