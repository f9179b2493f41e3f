"""Supervision of Spark jobs: their desired and observed states, and the progress of each feed."""
