"""Readers of region files: one module for each family of formats."""
