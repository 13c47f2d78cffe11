"""Running: the only room that joins engine, codec and store."""
