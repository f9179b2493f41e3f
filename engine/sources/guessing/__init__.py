"""Guesses about an unknown file: its format, which columns are entity, time and place, and
the settings of the feed.

Everything here is a proposal: a person sees it beside a sample of the rows,
and changes what is wrong.
"""
