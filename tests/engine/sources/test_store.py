"""The store of logs: what is said when it fails."""

from __future__ import annotations

import socket
from threading import Thread

import pytest

from engine.sources import store
from engine.sources.store import StoreUnavailable

DENIED = "When reading information for key 'log' in bucket 'rows': AWS Error ACCESS_DENIED during HeadObject operation"


@pytest.mark.parametrize(("fault", "said"), [(DENIED, "refuses access.*VEDETTE_LOG_STORE"), ("curlCode: 7, Couldn't connect", "does not answer")])
def test_wrong_keys_are_distinguished_from_a_store_that_is_away(fault: str, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails() -> None:
        raise OSError(fault)

    monkeypatch.setattr(store, "TIMEOUT_S", -1.0)
    with pytest.raises(StoreUnavailable, match=said):
        store._with_retries(fails)


def test_a_store_that_hangs_is_asked_few_times(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each request to it took 100 s, and so did the response to posted rows."""
    monkeypatch.setattr(store, "ANSWER_S", 1.0)
    monkeypatch.setattr(store, "TIMEOUT_S", -1.0)
    asked: list[socket.socket] = []

    def take(server: socket.socket) -> None:
        while True:
            try:
                asked.append(server.accept()[0])
            except OSError:
                return

    with socket.create_server(("127.0.0.1", 0)) as server:
        Thread(target=take, args=(server,), daemon=True).start()
        files = store.files_of(f"s3://key:secret@bucket/logs?endpoint_override=127.0.0.1:{server.getsockname()[1]}&scheme=http&region=local")
        with pytest.raises(StoreUnavailable, match="does not answer"):
            files.read("a")
        with pytest.raises(OSError, match="Timeout"):
            files.put("a", b"1")
        server.shutdown(socket.SHUT_RDWR)
    assert len(asked) <= 2 * 3
    for one in asked:
        one.close()
