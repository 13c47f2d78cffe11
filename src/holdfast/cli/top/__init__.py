"""`top`: the fleet, live."""
