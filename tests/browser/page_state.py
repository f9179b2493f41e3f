"""What the live page shows of its own state, by CSS selector."""

PRESENT = ".state-live, .state-behind, .state-ended"
"""The page shows the present; on a slow machine the world's last rows may
be more than a minute old."""
