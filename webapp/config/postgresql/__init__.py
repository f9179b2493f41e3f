"""Django's own backend for PostgreSQL, with connections that wait for their next request."""
