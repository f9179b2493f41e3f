"""The store of logs: what is said when it fails."""

from __future__ import annotations

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
