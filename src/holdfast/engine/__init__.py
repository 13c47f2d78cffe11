"""The deciding layer: a pure function from where a run stands and what came in to what happens next."""
