"""A kernel that was compiled is loaded again only while no file with kernels has changed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from engine.kernel_cache import ENGINE

CALLEE = "from numba import njit\n\n@njit(cache=True)\ndef callee(x):\n    return x + {}\n"
CALLER = "from numba import njit\nfrom engine.callee import callee\n\n@njit(cache=True)\ndef caller(x):\n    return callee(x)\n"
RUN = "from engine.caller import caller; print(caller(1), sum(caller.stats.cache_hits.values()))"


def test_a_kernel_is_compiled_again_when_a_function_it_calls_has_changed_in_another_file(tmp_path: Path) -> None:
    package = tmp_path / "engine"
    package.mkdir()
    for name in ("__init__.py", "kernel_cache.py"):
        (package / name).write_text((ENGINE / name).read_text())
    (package / "caller.py").write_text(CALLER)
    # Python's own caches compare times in seconds.
    environment = {"PYTHONDONTWRITEBYTECODE": "1"}
    answers = []
    for added in (1, 1, 2):
        (package / "callee.py").write_text(CALLEE.format(added))
        run = subprocess.run([sys.executable, "-c", RUN], cwd=tmp_path, capture_output=True, text=True, check=True, env=environment)
        answers.append(run.stdout.split())
    assert answers == [["2", "0"], ["2", "1"], ["3", "0"]]
