"""A notice as a mail: plain text, and the same as HTML without external content."""

from __future__ import annotations

from html import escape

from holdfast.holds.notify.escape import clean_text, for_html, one_line
from holdfast.holds.notify.notice import Notice

_STYLE = "font-family: sans-serif; font-size: 15px; line-height: 1.5; color: #1a1a1a; max-width: 40em"
_BUTTON = "display: inline-block; padding: 8px 16px; background: #1f4fd8; color: #fff; text-decoration: none"


def as_text(notice: Notice) -> str:
    parts = [clean_text(notice.prompt) or notice.title]
    facts = "\n".join(f"{name}: {value}" for name, value in notice.facts())
    if facts:
        parts.append(facts)
    parts.append(_way(notice))
    parts.append(_by_reply(notice))
    return "\n\n".join(part for part in parts if part) + "\n"


def as_html(notice: Notice) -> str:
    facts = "".join(
        f"<dt><b>{for_html(name)}</b></dt><dd>{for_html(value)}</dd>" for name, value in notice.facts()
    )
    return (
        f'<!doctype html><html><body><div style="{_STYLE}">'
        f"<p>{for_html(notice.prompt) or for_html(notice.title)}</p><dl>{facts}</dl>{_button(notice)}"
        f"<p>{for_html(_by_reply(notice))}</p>"
        "</div></body></html>\n"
    )


def _way(notice: Notice) -> str:
    """How to answer. Opening the link decides nothing: its page asks first."""
    if notice.is_about_the_end or not notice.hold:
        return ""
    if notice.link:
        return f"Open it to decide: {notice.link}"
    return f"Decide with: holdfast answer {notice.hold}"


def _button(notice: Notice) -> str:
    if notice.link and not notice.is_about_the_end:
        return f'<p><a href="{escape(notice.link)}" style="{_BUTTON}">Open it to decide</a></p>'
    return f"<p>{for_html(_way(notice))}</p>"


def _by_reply(notice: Notice) -> str:
    """The words that a reply may contain. Nothing else in it is interpreted."""
    if not notice.reply_token:
        return ""
    words = ", ".join(one_line(option.id, 60) for option in notice.options)
    return f"Or reply with one of these words on its own line: {words}. A second line may start with Comment:"
