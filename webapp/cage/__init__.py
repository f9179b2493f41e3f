"""Child processes for work on untrusted input: an empty environment, no network, no secrets, and
bounds on memory, time and files."""
