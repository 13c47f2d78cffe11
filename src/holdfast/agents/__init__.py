"""Agents: a model in a loop with tools, every turn and every tool call of it kept in the journal."""
