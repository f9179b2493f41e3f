"""Supervision of Spark jobs: their desired and observed states, and how far
each feed has been processed."""
