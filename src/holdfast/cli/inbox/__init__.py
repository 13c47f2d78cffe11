"""`holdfast inbox`: holds are decided in the terminal. The widgets need the extra `inbox` (textual)."""
