"""The services that Vedette needs: PostgreSQL, Redis, Java, Node and a process manager,
without root and without Docker.

Plain Python: nothing here imports Django, so that the environment can be prepared
before settings are read.
"""
