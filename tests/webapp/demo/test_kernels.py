"""Set-up compiles kernels again: those of another release are removed."""

from __future__ import annotations

from pathlib import Path

from webapp.demo.kernels import forget


def test_compiled_kernels_are_removed_and_nothing_else(tmp_path: Path) -> None:
    inner = tmp_path / "motion" / "__pycache__"
    inner.mkdir(parents=True)
    for name in ("sweep.step-1.py311.nbi", "sweep.step-1.py311.1.nbc", "sweep.cpython-311.pyc"):
        (inner / name).touch()
    forget(tmp_path)
    assert [path.name for path in inner.iterdir()] == ["sweep.cpython-311.pyc"]
