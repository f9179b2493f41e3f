"""A client for Vedette: send rows to its feeds, and follow the answers of its queries. It needs
only Python, and pandas for DataFrames."""

from vedette.answers import Answer, Answers
from vedette.connection import Fault, Forgotten, Refused, Unavailable
from vedette.feeds import Feed, Receipt, Writer
from vedette.vedette import Vedette

__all__ = ["Answer", "Answers", "Fault", "Feed", "Forgotten", "Receipt", "Refused", "Unavailable", "Vedette", "Writer"]
