"""Deployments with their delegation and defaults, and the skills that they bind."""
