"""The embedded Redis: a real server that evicts nothing, asks for its password,
and ends with its parent."""

import subprocess
import sys
import textwrap
from pathlib import Path

import psutil
import pytest
import redis

from tests.platform.test_postgres import wait_until
from webapp.platform.redis import EmbeddedRedis

pytestmark = pytest.mark.services


def test_redis_never_evicts_keys_and_writes_nothing_to_disk(tmp_path: Path) -> None:
    with EmbeddedRedis(tmp_path).running() as url, redis.Redis.from_url(url) as client:
        assert client.config_get("maxmemory-policy") == {"maxmemory-policy": "noeviction"}
        assert client.config_get("save") == {"save": ""}
        assert client.config_get("bind") == {"bind": "127.0.0.1"}


def test_the_server_is_a_maintained_version(tmp_path: Path) -> None:
    """Redis 6.2 up to 6.2.19 lets users who may run Lua execute arbitrary code (CVE-2025-49844);
    Valkey fixed it in 7.2.11, 8.0.6 and 8.1.4."""
    with EmbeddedRedis(tmp_path).running() as url, redis.Redis.from_url(url) as client:
        info = client.info("server")
        assert info["server_name"] == "valkey" and tuple(map(int, info["valkey_version"].split("."))) >= (9, 1)


def test_the_password_is_required(tmp_path: Path) -> None:
    with EmbeddedRedis(tmp_path).running() as url:
        with redis.Redis.from_url(url.replace(url.split("@")[0], "redis://:guess")) as client, pytest.raises(redis.AuthenticationError):
            client.ping()
        assert (tmp_path / "redis.conf").stat().st_mode & 0o777 == 0o600


def test_redis_ends_with_the_process_that_started_it(tmp_path: Path) -> None:
    program = f"""
        import time
        from pathlib import Path
        from webapp.platform.redis import EmbeddedRedis
        server = EmbeddedRedis(Path({str(tmp_path)!r}))
        server.start()
        print(server.pid, flush=True)
        time.sleep(60)
    """
    with subprocess.Popen([sys.executable, "-c", textwrap.dedent(program)], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        server = psutil.Process(int(parent.stdout.readline()))
        assert server.name() == "valkey-server"
        parent.kill()
    ended = wait_until(lambda: not server.is_running() or server.status() == psutil.STATUS_ZOMBIE)
    if not ended:
        server.kill()
    assert ended


def test_redis_reuses_its_port_if_it_is_free(tmp_path: Path) -> None:
    with EmbeddedRedis(tmp_path).running() as first:
        pass
    with EmbeddedRedis(tmp_path).running() as second:
        assert first == second
