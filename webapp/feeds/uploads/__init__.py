"""Feeds from files: a resumable upload, guesses about the file, and its loading into the log."""
