"""Stored answers, the outbox that carries them to browsers, and the one
transaction that writes both."""
