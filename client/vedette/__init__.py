"""A client for Vedette: send rows to its feeds, and follow the answers of its queries. It needs
nothing but Python; pandas only for DataFrames."""

from vedette.answers import Answer, Answers
from vedette.connection import Away, Fault, Forgotten, Refused
from vedette.feeds import Feed, Receipt, Writer
from vedette.vedette import Vedette

__all__ = ["Answer", "Answers", "Away", "Fault", "Feed", "Forgotten", "Receipt", "Refused", "Vedette", "Writer"]
