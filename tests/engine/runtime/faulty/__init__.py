"""A family for tests: it answers with every row, until a query fails."""
