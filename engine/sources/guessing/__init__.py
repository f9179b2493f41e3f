"""Guesses about an unknown file: its format, which columns are entity, time and place, and
the settings of the feed.

Everything here is a proposal: users see it next to a sample of the rows, and change what is wrong.
"""
