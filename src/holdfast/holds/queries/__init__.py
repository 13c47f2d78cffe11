"""Lists, history, figures, evidence: what can be read about holds."""
