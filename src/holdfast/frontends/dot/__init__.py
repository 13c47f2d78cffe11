"""Attractor pipelines in DOT: read, checked, lowered to a graph, written back. Nothing here runs anything."""
