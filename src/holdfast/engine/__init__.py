"""The deciding layer: a pure function from a run's position and a message to what happens next."""
