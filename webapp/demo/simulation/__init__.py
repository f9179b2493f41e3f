"""Demo feeds: pure functions of (seed, time) that also give their ground truth."""
