"""Flows that are started by the clock: when, with what, and what happens to instants that were missed."""
