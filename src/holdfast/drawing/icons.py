"""Icons of 16 by 16 pixels for states, shapes and marks, and their colours."""

from __future__ import annotations

from holdfast.drawing.picture import Highlight, NodeShape, State

_DISC = '<circle class="disc" cx="8" cy="8" r="7.5"/>'

_SIGNS: dict[str, str] = {
    State.done: _DISC + '<path d="M4.5 8.2l2.4 2.5 4.6-5"/>',
    State.failed: _DISC + '<path d="M5.3 5.3l5.4 5.4M10.7 5.3l-5.4 5.4"/>',
    State.running: _DISC + '<path class="full" d="M6.2 4.6l5.4 3.4-5.4 3.4z"/>',
    State.waiting: _DISC + '<path d="M8 4.2v4l2.7 1.7"/>',
    State.asking: _DISC + '<path d="M6.2 5v6M9.8 5v6"/>',
    State.skipped: _DISC + '<path d="M4.8 8h6.4"/>',
    State.unknown: _DISC + '<path d="M6 6.3c.2-2.6 4-2.4 4-.1 0 1.6-2 1.6-2 3.2M8 11.6v.3"/>',
    State.ready: _DISC + '<path d="M8 7.9v.2"/>',
    Highlight.added: _DISC + '<path d="M8 4.6v6.8M4.6 8h6.8"/>',
    Highlight.removed: _DISC + '<path d="M4.6 8h6.8"/>',
    Highlight.changed: _DISC + '<path d="M4.4 9.2c1.2-2.6 2.4-2.6 3.6-1.2s2.4 1.4 3.6-1.2"/>',
    NodeShape.hold: '<circle cx="8" cy="5" r="3"/><path d="M2.5 14.5c0-6 11-6 11 0z"/>',
    NodeShape.timer: '<circle cx="8" cy="8.5" r="6"/><path d="M8 5v3.7l2.4 1.5M6 1h4"/>',
    NodeShape.map: '<path d="M2 4h12M2 8h12M2 12h12"/>',
    NodeShape.subflow: '<path d="M1.5 2.5h13v11h-13zM4.5 5.5h7v5h-7z"/>',
    NodeShape.choice: '<path d="M8 1.5l6.5 6.5-6.5 6.5-6.5-6.5z"/>',
    NodeShape.fork: '<path d="M8 1.5v4M8 5.5l-5.5 5v4M8 5.5l5.5 5v4M8 5.5v9"/>',
    NodeShape.meet: '<path d="M8 14.5v-4M8 10.5l-5.5-5v-4M8 10.5l5.5-5v-4M8 10.5v-9"/>',
    NodeShape.tool: '<path d="M1.5 2.5h13v11h-13zM4 6l2.5 2-2.5 2M8.5 10.5h3.5"/>',
    NodeShape.manager: '<path d="M1 8c3.5-6 10.5-6 14 0-3.5 6-10.5 6-14 0z"/><circle cx="8" cy="8" r="2.2"/>',
    NodeShape.entry: '<path d="M5 2.5l7 5.5-7 5.5z"/>',
    NodeShape.exit: '<path d="M3 3h10v10h-10z"/>',
    NodeShape.guard: '<path d="M8 1.5l5.5 2v4c0 3.6-2.4 5.8-5.5 7-3.1-1.2-5.5-3.4-5.5-7v-4z"/>',
}


def icon(what: str) -> str:
    return _SIGNS.get(what, "")


_LIGHT = {
    "ground": "#ffffff",
    "ink": "#1f2933",
    "soft": "#5b6875",
    "line": "#8593a1",
    "box": "#f6f8fa",
    State.done: "#1a7f46",
    State.failed: "#c22f2f",
    State.running: "#0b6fb8",
    State.waiting: "#8a6100",
    State.asking: "#8a6100",
    State.skipped: "#6b7785",
    State.unknown: "#a8326f",
    State.ready: "#5b6875",
    Highlight.taken: "#1a7f46",
    Highlight.added: "#1a7f46",
    Highlight.removed: "#c22f2f",
    Highlight.changed: "#8a6100",
}
_DARK = {
    "ground": "#12171c",
    "ink": "#e6ebf0",
    "soft": "#a3b0bd",
    "line": "#76838f",
    "box": "#1d242b",
    State.done: "#5fce8f",
    State.failed: "#ff8080",
    State.running: "#63b8f5",
    State.waiting: "#e8bd54",
    State.asking: "#e8bd54",
    State.skipped: "#94a1ad",
    State.unknown: "#f08abf",
    State.ready: "#a3b0bd",
    Highlight.taken: "#5fce8f",
    Highlight.added: "#5fce8f",
    Highlight.removed: "#ff8080",
    Highlight.changed: "#e8bd54",
}
_FIXED = """
.holdfast text{font:13px system-ui,-apple-system,"Segoe UI",Roboto,Helvetica,sans-serif;text-anchor:middle}
.holdfast .note,.holdfast .label,.holdfast .legend text{font-size:11px}
.holdfast .legend text{text-anchor:start}
.holdfast .name{font-weight:600}
.holdfast .box{stroke-width:1.4}
.holdfast .line{fill:none;stroke-width:1.5}
.holdfast .inner,.holdfast .shape *,.holdfast .ring{fill:none;stroke-width:1.3}
.holdfast .sign path{fill:none;stroke-width:1.8;stroke-linecap:round;stroke-linejoin:round}
.holdfast .sign .full{stroke:none}
.holdfast .conditional>.line{stroke-dasharray:6 3}
.holdfast .failure>.line{stroke-dasharray:2 3}
.holdfast .dead>.line{stroke-dasharray:1 5}
.holdfast .taken>.line,.holdfast .added>.line,.holdfast .changed>.line{stroke-width:2.4;stroke-dasharray:none}
.holdfast .removed>.line{stroke-dasharray:4 4;stroke-width:2}
.holdfast .skipped>.box,.holdfast .removed>.box{stroke-dasharray:4 3}
"""


def style_sheet() -> str:
    """Light, and dark if the reader prefers it. Rules are below `.holdfast`, so they affect nothing else."""
    dark = _colours(_DARK)
    return f"<style>{_FIXED}{_colours(_LIGHT)}@media (prefers-color-scheme:dark){{{dark}}}</style>"


def _colours(of: dict[str, str]) -> str:
    rules = [
        f".holdfast{{background:{of['ground']}}}",
        f".holdfast text{{fill:{of['ink']}}}",
        f".holdfast .note,.holdfast .label,.holdfast .legend text{{fill:{of['soft']}}}",
        f".holdfast .ground{{fill:{of['ground']}}}",
        f".holdfast .box{{fill:{of['box']};stroke:{of['line']}}}",
        f".holdfast .inner,.holdfast .shape *,.holdfast .ring{{stroke:{of['soft']}}}",
        f".holdfast .dot circle{{fill:{of['line']}}}.holdfast .dot .ring{{fill:none}}",
        f".holdfast .line{{stroke:{of['line']}}}.holdfast .head{{fill:{of['line']}}}",
        f".holdfast .failure>.line{{stroke:{of[State.failed]}}}",
        f".holdfast .failure>.head{{fill:{of[State.failed]}}}",
        f".holdfast .sign path{{stroke:{of['ground']}}}.holdfast .sign .full{{fill:{of['ground']}}}",
    ]
    for name in (*_of(State), *_of(Highlight)):
        colour = of[name]
        rules.append(
            f".holdfast .{name}>.box{{stroke:{colour}}}.holdfast .{name}>.sign .disc{{fill:{colour}}}"
        )
    rules += [
        f".holdfast .{name}>.line{{stroke:{of[name]}}}.holdfast .{name}>.head{{fill:{of[name]}}}"
        for name in _of(Highlight)
    ]
    return "\n".join(rules)


def _of(words: type[State] | type[Highlight]) -> list[str]:
    return [str(word) for word in words if word]
