"""Names of the columns that every feed has; loads nothing, so that code that only
moves rows needs no kernel."""

SEQ, CLOCK = "seq", "clock"
EVENT, ENTITY, TIME, TIME_END, X, Y = "event", "entity", "t", "t_end", "x", "y"
CORE_COLUMNS = (EVENT, ENTITY, TIME, TIME_END, X, Y)
