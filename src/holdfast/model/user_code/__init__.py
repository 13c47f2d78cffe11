"""The one boundary around every function of a user: how it is called, and what of it comes back."""
