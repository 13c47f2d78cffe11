"""New runs from a moment of an old one: fork, patch, resume from a checkpoint."""
