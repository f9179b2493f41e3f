"""Supervision of Spark jobs: what is wanted, what runs, and how far each feed has been processed."""
