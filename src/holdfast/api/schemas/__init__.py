"""The wire formats: JSON in snake_case, times as RFC 3339 in UTC."""
