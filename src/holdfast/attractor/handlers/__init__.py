"""What stages do, by type."""
