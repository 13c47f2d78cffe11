"""People, groups and roles, looked up whenever a permission is checked."""
