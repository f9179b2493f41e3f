"""`python -m tests.fuzz.reading --count 20000`: mutated files of the formats that become feeds,
given to the caged reader.

Without a server, which is many times faster. A file is inspected and, if that succeeds, read. A
file that ends the program, or takes more than 5 s of processor time, is counted and kept: in the
cage it only ends one request, with an error message.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from tests.fuzz import corpus
from tests.fuzz.campaign import SLOW_S, request

AT_ONCE = 200
"""This many files are read by one process."""


def main() -> int:
    options = argparse.ArgumentParser(prog="python -m tests.fuzz.reading", description=__doc__)
    options.add_argument("--count", type=int, default=20_000, help="files of each kind")
    options.add_argument("--kinds", default="", help="some of them, separated by commas; all when empty")
    options.add_argument("--seed", type=int, default=17)
    options.add_argument("--keep", type=Path, default=Path("var/fuzz-reading"), help="folder for the progress, and for files that ended the program")
    given = options.parse_args()
    chosen = [kind for kind in given.kinds.split(",") if kind] or list(corpus.recordings())
    given.keep.mkdir(parents=True, exist_ok=True)
    file = given.keep / "progress.json"
    known: dict[str, dict[str, Any]] = json.loads(file.read_text()) if file.exists() else {}
    from webapp.feeds.uploads import reader

    reader.warm_up()
    while waiting := [kind for kind in chosen if known.get(kind, {}).get("done", 0) < given.count]:
        for kind in waiting:
            begin = known.get(kind, {}).get("done", 0)
            known[kind] = _added(known.get(kind, {}), _round(kind, range(begin, min(begin + AT_ONCE, given.count)), given))
            file.write_text(json.dumps(known, indent=1))
            print(kind, known[kind], flush=True)
    return int(any(one["ended"] or one["slow"] for one in known.values()))


def _added(before: dict[str, Any], found: dict[str, Any]) -> dict[str, Any]:
    greatest = {name: max(before.get(name, 0), found[name]) for name in ("slowest_s", "memory_mb")}
    return {**{name: before.get(name, 0) + found[name] for name in ("done", "taken", "refused", "ended", "slow")}, **greatest}


def _round(kind: str, numbers: range, given: argparse.Namespace) -> dict[str, Any]:
    """The results of the files with these numbers; one that ends its process is
    counted, and the next is read."""
    found: Counter[str] = Counter(taken=0, refused=0, ended=0, slow=0)
    slowest, memory, next_one = 0.0, 0, numbers.start
    while next_one < numbers.stop:
        receiving, sending = get_context("fork").Pipe(duplex=False)
        process = get_context("fork").Process(target=_read_all, args=(kind, range(next_one, numbers.stop), given.seed, sending.send))
        process.start()
        sending.close()
        while True:
            try:
                outcome, took, memory_now = receiving.recv()
            except EOFError:
                break
            memory, slowest = max(memory, memory_now), max(slowest, took)
            bad = ("ended" if outcome == "ended" else "") or ("slow" if took > SLOW_S else "")
            found.update([outcome, *(["slow"] if bad == "slow" else [])])
            if bad:
                _keep(kind, next_one, bad, given)
            next_one += 1
        process.join()
        if process.exitcode:
            found["ended"] += 1
            _keep(kind, next_one, f"ended-{process.exitcode}", given)
            next_one += 1
    return {"done": len(numbers), "slowest_s": round(slowest, 2), "memory_mb": memory // 1000, **found}


def _keep(kind: str, number: int, why: str, given: argparse.Namespace) -> None:
    (given.keep / f"{kind.replace(' ', '-')}-{number}-{why}").write_bytes(request(kind, number, given.seed).body)


def _read_all(kind: str, numbers: range, seed: int, tell: Callable[[tuple[str, float, int]], None]) -> None:
    """Reports for each file the result, the processor time and the peak memory of
    the process so far, in kB."""
    from webapp.feeds.uploads.inspection import MEMORY_BYTES

    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with tempfile.TemporaryDirectory() as folder:
        for number in numbers:
            sent = request(kind, number, seed)
            path = Path(folder) / "file"
            path.write_bytes(sent.body)
            before = time.process_time()
            outcome = _outcome(path, sent.file)
            tell((outcome, time.process_time() - before, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss))


def _outcome(path: Path, name: str) -> str:
    from webapp.feeds.uploads import reader

    try:
        found = reader.run({"do": "inspect", "path": str(path), "name": name, "chosen": {}}, b"")
        if "faults" in found:
            return "refused"
        json.dumps(found)
        reading, number = found["found"]["reading"], 0
        while (piece := reader.run({"do": "read", "path": str(path), "reading": reading, "piece": number}, b"")).get("rows") is not None:
            json.dumps(piece)
            number += 1
        return "taken"
    except Exception:
        traceback.print_exc()
        return "ended"


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.fuzz.settings")
    sys.exit(main())
