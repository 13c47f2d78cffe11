"""Attractor pipelines in DOT: parsing, checks, lowering to a graph, rendering. Nothing here runs one."""
