"""The demo: simulated worlds, their feeds and queries, and how well these find what truly happened.
Nothing of the product needs it."""
