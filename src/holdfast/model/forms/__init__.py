"""Forms of holds: what is shown, what is asked, and what may be chosen."""
