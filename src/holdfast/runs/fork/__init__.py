"""New runs from a moment of an old one: fork, rewind, patch."""
