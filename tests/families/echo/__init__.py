"""A family for tests of everything around operators: it tells what it is given, or keeps quiet."""
