"""Reports from a run's journal: pictures of comparisons, post-mortems, evidence."""
