"""The Spark jobs of this machine."""

import os

from webapp.config.settings.environment import number, text

VEDETTE_CORES = number("VEDETTE_CORES", min(os.cpu_count() or 1, 8))
VEDETTE_PARTITIONS = number("VEDETTE_PARTITIONS", VEDETTE_CORES)
VEDETTE_SPARK_MEMORY = text("VEDETTE_SPARK_MEMORY", "1g")
