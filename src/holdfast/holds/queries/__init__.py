"""Read access to holds: lists, history, metrics, evidence."""
