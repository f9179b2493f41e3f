"""Any queries over any file: the program of `manage.py backtest` (specification 7). Needs no
database, no broker and no running service."""
