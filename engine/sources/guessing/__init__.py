"""What an unknown file probably is: how it is written, which columns say who, when and where, and what that says about the feed.

Everything here is a proposal: a person sees it beside a sample of the rows, and changes what is wrong.
"""
