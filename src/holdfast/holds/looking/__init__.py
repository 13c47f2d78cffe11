"""Lists, history, figures, evidence: what can be seen of holds."""
