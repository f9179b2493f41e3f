"""Child processes for work on what strangers send: an empty environment, no network, no secrets, and bounds on memory, time and files."""
