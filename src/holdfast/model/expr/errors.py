from __future__ import annotations


class ExprSyntaxError(ValueError):
    """The text is not an expression. `column` counts characters from 1."""

    def __init__(self, problem: str, *, text: str, column: int, hint: str = "") -> None:
        self.problem = problem
        self.text = text
        self.column = column
        self.hint = hint
        advice = f" ({hint})" if hint else ""
        super().__init__(f"{problem} at column {column} of {_excerpt(text, column)}{advice}")


def _excerpt(text: str, column: int, width: int = 60) -> str:
    """A hostile text may be huge: show only what surrounds the fault."""
    if len(text) <= width:
        return repr(text)
    start = max(0, min(column - 1 - width // 2, len(text) - width))
    shown = repr(text[start : start + width])
    return f"{'…' if start else ''}{shown}{'…' if start + width < len(text) else ''}"
