"""The Spark jobs of this machine."""

import os

from webapp.config.settings.environment import number, text

VEDETTE_CORES = number("VEDETTE_CORES", min(os.cpu_count() or 1, 8), least=1, most=1024)
# Where operators run: in the job's own process (`driver`), or in Spark's workers
# (`executors`, for several machines).
VEDETTE_PLACEMENT = text("VEDETTE_PLACEMENT", "driver")
_PARTITIONS = VEDETTE_CORES if VEDETTE_PLACEMENT == "executors" else 1
VEDETTE_PARTITIONS = number("VEDETTE_PARTITIONS", _PARTITIONS, least=1, most=1024)
# Empty: this machine alone.
VEDETTE_SPARK_MASTER = text("VEDETTE_SPARK_MASTER", "")
# On several machines: the name by which Spark's workers reach the job's process (empty: it listens
# on loopback alone), and the secret they share.
VEDETTE_SPARK_HOST = text("VEDETTE_SPARK_HOST", "")
VEDETTE_SPARK_SECRET = text("VEDETTE_SPARK_SECRET", "")
VEDETTE_SPARK_MEMORY = text("VEDETTE_SPARK_MEMORY", "1g")
# Batches of a feed begin this far apart at the earliest. Back to back, a few feeds would keep every
# core busy with batches of a few rows.
VEDETTE_TRIGGER_MS = number("VEDETTE_TRIGGER_MS", 50, least=0, most=60_000)
# The results of a batch are stored in smaller parts when a statement, or all before the last one
# together, takes longer than this. The last one may begin just before that and take as long again,
# and a batch that takes 300 s counts as hung.
VEDETTE_STORE_SECONDS = number("VEDETTE_STORE_SECONDS", 120, least=1, most=150)
