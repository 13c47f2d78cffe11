"""The formats of a post-mortem."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from holdfast.app.extensions import POSTMORTEMS, PostmortemReports
from holdfast.errors import InputError
from holdfast.reports.html import to_html
from holdfast.reports.markdown import to_markdown
from holdfast.reports.postmortem import MAX_VISITS, Postmortem, build_postmortem

if TYPE_CHECKING:
    from holdfast.runs.service import RunService

FORMS: Final[dict[str, Callable[[Postmortem], str]]] = {"md": to_markdown, "html": to_html}


def renderer(form: str) -> Callable[[Postmortem], str]:
    """Raises InputError for an unknown format."""
    if form not in FORMS:
        raise InputError(
            f"unknown format {form!r} of a post-mortem.", hint=f"Use one of: {', '.join(FORMS)}."
        )
    return FORMS[form]


async def render(service: RunService, run: str, form: str, *, chapters: int = MAX_VISITS) -> str:
    return renderer(form)(await build_postmortem(service, run, chapters=chapters))


POSTMORTEMS.register(PostmortemReports(render, build_postmortem))
