"""The node types: one module for each, or for a family of them."""
