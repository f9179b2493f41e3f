"""Demo feeds: pure functions of (seed, time) that also state what truly happens in them."""
