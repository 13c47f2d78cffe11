"""A terminal inbox: what is shown is a function of a state, and a key leads to another state."""
