"""Nodes with `isolation="process"`: their code runs in a child process, which can be killed."""
