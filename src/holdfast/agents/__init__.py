"""Agents: a model in a loop with tools; every turn and every tool call is recorded in the journal."""
