"""Vedette's engine: continuous queries over streams of moving things, in plain Python on Arrow columns."""
