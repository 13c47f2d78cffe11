"""What people do to a hold: each action a module, all by one compare-and-set."""
