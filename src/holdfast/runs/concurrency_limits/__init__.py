"""Concurrency limits of runs: which one a run has, and what an operator sees and sets."""
