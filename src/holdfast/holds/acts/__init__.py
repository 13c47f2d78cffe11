"""What people do to a hold: each act a module, all by one compare-and-set."""
