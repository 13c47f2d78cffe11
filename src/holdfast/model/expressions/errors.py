from __future__ import annotations

from holdfast.errors import ExpressionError


class ExprSyntaxError(ExpressionError, ValueError):
    """The text is not an expression. `column` counts characters from 1."""

    def __init__(self, problem: str, *, text: str, column: int, hint: str = "") -> None:
        super().__init__(
            f"{problem} at column {column} of {_excerpt(text, column)}", hint=hint, column=column
        )
        self.problem = problem
        self.text = text
        self.column = column

    def __str__(self) -> str:
        return f"{self.message} ({self.hint})" if self.hint else self.message


def _excerpt(text: str, column: int, width: int = 60) -> str:
    """A hostile text may be huge: show only what surrounds the fault."""
    if len(text) <= width:
        return repr(text)
    start = max(0, min(column - 1 - width // 2, len(text) - width))
    shown = repr(text[start : start + width])
    return f"{'…' if start else ''}{shown}{'…' if start + width < len(text) else ''}"
