"""Calendars, deadlines, reminders, and the sweeps that act on them."""
