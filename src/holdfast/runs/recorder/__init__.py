"""Writes step records in batches and repeats what the store could not take."""
