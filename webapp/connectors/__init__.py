"""Streams from outside into feeds: their settings, the process that runs them, and their API
(decision 29)."""
