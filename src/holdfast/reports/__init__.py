"""What a run's journal tells, made to be read: pictures of comparisons, post-mortem reports."""
