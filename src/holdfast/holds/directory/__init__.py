"""Who works here: people, groups and roles, asked whenever somebody wants to see or decide something."""
