"""Streams from outside that run into feeds: their settings, the process that runs them,
and their API (decision 29)."""
