"""Users' knowledge about entities: a registry of names and attributes, notes, watches; and the
regions that entities visited."""
