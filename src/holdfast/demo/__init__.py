"""`python -m holdfast.demo`: a process is killed in the middle of its work, and nothing is lost."""
