"""Feeds from files: an upload that can be resumed, what the file probably is, and its way into the log."""
