from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import pytest

from holdfast import errors
from holdfast.errors import HoldfastError
from holdfast.model.expressions import ExprSyntaxError, compile_expr
from holdfast.model.template import TemplateSyntaxError, compile_template
from holdfast.types.duration import DurationError, parse_duration
from tools.pages import errors as errors_page

ROOT = Path(__file__).resolve().parents[2]
CLASSES: list[type[HoldfastError]] = [
    found
    for name, found in vars(errors).items()
    # An alias has another name than its class (`GateShutError`).
    if inspect.isclass(found) and issubclass(found, HoldfastError) and found.__name__ == name
]


def test_page_of_errors_is_the_one_that_the_module_makes() -> None:
    page = errors_page.page()
    assert (ROOT / "docs" / "reference" / "errors.md").read_text("utf-8") == page, (
        "run: python tools/docs.py pages"
    )


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_page_has_a_line_with_code_status_and_retryable_for_each_error(cls: type[HoldfastError]) -> None:
    text = (ROOT / "docs" / "reference" / "errors.md").read_text("utf-8")
    (line,) = [line for line in text.splitlines() if line.startswith("|") and f"`{cls.__name__}`" in line]
    _, _, code, status, retryable, when, _ = (cell.strip() for cell in line.split("|"))
    assert when
    assert (code, status) == (f"`{cls.code}`", str(cls.status))
    assert retryable == ("yes" if cls.retryable else "no")


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_tree_at_the_top_of_the_module_names_each_error_under_its_parent(cls: type[HoldfastError]) -> None:
    lines = (errors.__doc__ or "").splitlines()
    names = {line.lstrip(" │├└─").partition(" ")[0]: line for line in lines}
    assert cls.__name__ in names
    depth = len(cls.__mro__) - len(HoldfastError.__mro__)
    indents = {name: len(line) - len(line.lstrip(" │├└─")) for name, line in names.items()}
    assert indents[cls.__name__] - indents["HoldfastError"] == 4 * depth


def test_each_error_has_a_code_of_its_own() -> None:
    codes = [cls.code for cls in CLASSES]
    assert sorted(codes) == sorted(set(codes))


@pytest.mark.parametrize(
    ("read", "text", "kind"),
    [
        (compile_expr, "amount = 5", ExprSyntaxError),
        (compile_template, "Refund {{amount", TemplateSyntaxError),
        (parse_duration, "soon", DurationError),
    ],
    ids=["expression", "template", "duration"],
)
def test_text_that_cannot_be_read_is_one_of_our_errors_with_place_and_advice(
    read: Any, text: str, kind: type[errors.ExpressionError]
) -> None:
    with pytest.raises(kind) as caught:
        read(text)
    assert isinstance(caught.value, errors.ExpressionError)
    assert isinstance(caught.value, ValueError)
    assert caught.value.hint
    assert caught.value.hint in str(caught.value)
    assert caught.value.facts["column"] >= 1  # type: ignore[operator]
