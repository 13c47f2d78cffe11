"""How things look on the wire: JSON in snake_case, instants as RFC 3339 in UTC."""
