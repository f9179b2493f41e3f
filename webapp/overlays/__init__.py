"""Overlays below everything else on a feed's map: streets, sea marks, fences."""
