"""What each answer to a hold would lead to, found without outside effects."""
