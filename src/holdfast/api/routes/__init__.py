"""What the interface can do, a module a theme."""
