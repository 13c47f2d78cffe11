"""Options and arguments that several commands share, and how their values are read."""
