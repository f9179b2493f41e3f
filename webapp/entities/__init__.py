"""What users know about entities: a registry of names and attributes, notes, watches; and
where entities have been."""
