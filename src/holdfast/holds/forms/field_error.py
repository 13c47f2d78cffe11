from __future__ import annotations


class FieldValueError(Exception):
    """A value that its field does not accept. `code` is for programs."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
