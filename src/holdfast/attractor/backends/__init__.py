"""Backends that answer the prompts of codergen stages."""
