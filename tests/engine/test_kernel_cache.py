"""A kernel that was compiled is loaded again only while no file with kernels has changed."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from numba.core.caching import IndexDataCacheFile

from engine.kernel_cache import ABOVE, ENGINE

CALLEE = "from numba import njit\n\n@njit(cache=True)\ndef callee(x):\n    return x + {}\n"
CALLER = "from numba import njit\nfrom engine.callee import callee\n\n@njit(cache=True)\ndef caller(x):\n    return callee(x)\n"
RUN = "from engine.caller import caller; print(caller(1), sum(caller.stats.cache_hits.values()))"


def package_in(folder: Path) -> Path:
    package = folder / "engine"
    package.mkdir()
    for name in ("__init__.py", "kernel_cache.py"):
        (package / name).write_text((ENGINE / name).read_text())
    return package


def run(folder: Path, source: str, **environment: str) -> list[str]:
    # Python's own caches compare times in seconds.
    environment["PYTHONDONTWRITEBYTECODE"] = "1"
    done = subprocess.run([sys.executable, "-c", source], cwd=folder, capture_output=True, text=True, check=True, env=environment)
    return done.stdout.split()


def twice(folder: Path, source: str, module: str) -> list[str]:
    """What `source` prints, and again after it has imported `module` again."""
    return run(folder, f"{source}\nimport sys; del sys.modules[{module!r}]\n{source}")


def test_where_the_code_cannot_be_written_to_kernels_are_kept_in_the_users_home(tmp_path: Path) -> None:
    """As on a server whose services may only read the code."""
    package = package_in(tmp_path)
    (package / "callee.py").write_text(CALLEE.format(1))
    # Root may write to any folder, but to none inside a file.
    (package / "__pycache__").write_text("")
    source = "from engine.callee import callee; print(callee(1), sum(callee.stats.cache_hits.values()))"
    home = str(tmp_path / "home")
    assert [run(tmp_path, source, HOME=home) for _ in range(2)] == [["2", "0"], ["2", "1"]]


def test_a_kernel_is_compiled_again_when_a_function_it_calls_has_changed_in_another_file(tmp_path: Path) -> None:
    package = package_in(tmp_path)
    (package / "caller.py").write_text(CALLER)
    answers = []
    for added in (1, 1, 2):
        (package / "callee.py").write_text(CALLEE.format(added))
        answers.append(run(tmp_path, RUN))
    assert answers == [["2", "0"], ["2", "1"], ["3", "0"]]


def test_a_kernel_is_compiled_again_when_it_or_a_constant_has_changed_and_no_file_there_names_numba(tmp_path: Path) -> None:
    package = package_in(tmp_path)
    (package / "compiled.py").write_text("from numba import njit\n\ndef jit(function):\n    return njit(cache=True)(function)\n")
    answers = []
    for constant, added in ((1, 1), (1, 2), (2, 2)):
        (package / "constants.py").write_text(f"ONE = {constant}\n")
        source = f"from engine.compiled import jit\nfrom engine.constants import ONE\n\n@jit\ndef caller(x):\n    return x + ONE + {added}\n"
        (package / "caller.py").write_text(source)
        answers.append(twice(tmp_path, RUN, "engine.caller"))
    assert answers == [["3", "0", "3", "1"], ["4", "0", "4", "1"], ["5", "0", "5", "1"]]


def test_a_kernel_is_compiled_once_for_all_constants_that_other_kernels_pass(tmp_path: Path) -> None:
    package = package_in(tmp_path)
    (package / "callee.py").write_text("from numba import njit\n\n@njit(cache=True)\ndef callee(x, y):\n    return x + y\n")
    body = "    total = 0\n    for i in range(x):\n        total = callee(total, 1) + callee(i, 2)\n    return total\n"
    (package / "caller.py").write_text(f"from numba import njit\nfrom engine.callee import callee\n\n@njit(cache=True)\ndef caller(x):\n{body}")
    source = "from engine.caller import callee, caller; print(caller(3), len(callee.signatures))"
    assert run(tmp_path, source) == ["12", "1"]


def test_no_kernel_of_the_other_packages_depends_on_those_above() -> None:
    below = [path for path in ENGINE.rglob("*.py") if path.relative_to(ENGINE).parts[0] not in ABOVE]
    assert not [path.name for path in below if re.search(rf"engine\.({'|'.join(ABOVE)})\b", path.read_text())]


def test_a_kernel_is_compiled_again_when_a_class_that_it_took_is_no_more(tmp_path: Path) -> None:
    package = package_in(tmp_path)
    answers = []
    for name in ("Point", "Place"):
        (package / "places.py").write_text(f"from typing import NamedTuple\n\nclass {name}(NamedTuple):\n    x: int\n")
        (package / "kernel.py").write_text("from numba import njit\n\n@njit(cache=True)\ndef kernel(place):\n    return place.x + 1\n")
        source = (
            f"from engine.kernel import kernel; from engine.places import {name}; print(kernel({name}(1)), sum(kernel.stats.cache_hits.values()))"
        )
        answers.append(twice(tmp_path, source, "engine.kernel"))
    assert answers == [["2", "0", "2", "1"]] * 2


DAMAGING = """
import sys
from pathlib import Path

def show():
    # A module that is imported again reads the files again.
    sys.modules.pop("engine.callee", None)
    from engine.callee import callee
    print(callee(1), sum(callee.stats.cache_hits.values()))

show()
for path in sorted(Path("engine/__pycache__").glob("callee*.nb?")):
    whole = path.read_bytes()
    for damaged in (b"", whole[:9], whole[: len(whole) // 2], bytes(len(whole))):
        path.write_bytes(damaged)
        show()
        show()
"""


def test_a_kernel_is_compiled_again_when_its_files_are_damaged(tmp_path: Path) -> None:
    """Files after a loss of power: empty, cut off, or full of zeros."""
    (package_in(tmp_path) / "callee.py").write_text(CALLEE.format(1))
    compiled, loaded = ["2", "0"], ["2", "1"]
    answers = run(tmp_path, DAMAGING)
    assert [answers[at : at + 2] for at in range(0, len(answers), 2)] == [compiled, *[compiled, loaded] * 8], "two files, four damages"


def cache_of(folder: Path, release: str) -> Any:
    made: Any = IndexDataCacheFile
    return made(str(folder), "kernel", release)


def save_while(one: Any, other: Any, key: str) -> None:
    """`one` has written the first of its two files when `other`, which had read the
    index before, saves "key"."""
    first: list[Any] = []

    def interrupted(write: Any) -> Any:
        def written(*arguments: Any) -> None:
            write(*arguments)
            if not first:
                first.append(write)
                other._load_index = dict
                other.save("key", "other's code")
                del other._load_index

        return written

    one._save_index, one._save_data = interrupted(one._save_index), interrupted(one._save_data)
    one.save(key, "one's code")


def test_a_process_of_an_older_release_does_not_replace_the_code_of_a_newer_one(tmp_path: Path) -> None:
    old, new = cache_of(tmp_path, "old"), cache_of(tmp_path, "new")
    save_while(old, new, "key")
    assert new.load("key") in (None, "other's code")
    assert old.load("key") in (None, "one's code")


def test_two_processes_that_compile_for_different_arguments_do_not_mix_them(tmp_path: Path) -> None:
    one, other = cache_of(tmp_path, "release"), cache_of(tmp_path, "release")
    save_while(one, other, "another key")
    assert one.load("another key") in (None, "one's code")
    assert one.load("key") in (None, "other's code")


def test_files_of_code_do_not_pile_up(tmp_path: Path) -> None:
    for release in ("1", "2", "3"):
        kept = cache_of(tmp_path, release)
        kept.save("ints", release)
        kept.save("floats", release)
    assert sorted(path.suffix for path in tmp_path.iterdir()) == [".nbc", ".nbc", ".nbi"]
    assert kept.load("ints") == "3"
