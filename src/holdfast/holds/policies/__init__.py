"""Policies: rules that choose, from what a hold shows, whom it goes to, until when, or what comes of it."""
