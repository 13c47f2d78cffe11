"""Running flows: the only package that joins engine, codec and store."""
