"""Drawings that lie under everything on a feed's map: streets, sea marks, fences."""
