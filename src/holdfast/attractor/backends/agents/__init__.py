"""Command-line agents (claude, codex, gemini) as backends: an adapter for each, and what they share."""
