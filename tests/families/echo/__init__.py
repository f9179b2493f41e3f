"""A family for tests of everything around operators: it reports its input, or nothing."""
