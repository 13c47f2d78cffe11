"""What a handler can reach while it runs: sub-steps, questions, events, memory, skills."""
