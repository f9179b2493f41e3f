"""Vedette's engine: continuous queries over streams of moving things, in
plain Python on Arrow columns."""

import os

# numba reads this once, when it is loaded; see kernel_cache.py.
os.environ["NUMBA_CACHE_LOCATOR_CLASSES"] = ",".join(f"engine.kernel_cache.{name}" for name in ("NamedFolder", "InSourceFolder", "InHome"))
