"""The demo: simulated worlds, their feeds and queries, and how well these find the ground truth. No
other app depends on it."""
