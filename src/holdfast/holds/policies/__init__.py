"""Policies: rules that choose a hold's assignee, deadline or decision from what it shows."""
