"""Where large values live when they leave the database."""
