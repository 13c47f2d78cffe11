"""What `holdfast doctor` examines, a module a subject."""
