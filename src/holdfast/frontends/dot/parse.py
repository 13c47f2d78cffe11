"""Parses a pipeline. Small deviations from the grammar give a warning; with `strict` they are errors.

Also turns the bytes of a file into text, within a limit of size.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Final

import msgspec

from holdfast.errors import PipelineSyntaxError
from holdfast.frontends.dot.diagnostics import Diagnostic
from holdfast.frontends.dot.document import Link, Pipeline, SourceLocation, SourceLocations, Stage
from holdfast.frontends.dot.handler_kinds import with_ordinary_names
from holdfast.frontends.dot.header import NAMES, HeaderReader
from holdfast.frontends.dot.lex import ARROW, BAD, END, NUMBER, STRING, UNDIRECTED, WORD, TokenBuffer
from holdfast.frontends.dot.literals import id_of
from holdfast.frontends.dot.scopes import (
    DEEPEST,
    MOST_DEFAULTS,
    Block,
    Chain,
    SharedAttributes,
    StageDraft,
    SubgraphScope,
)
from holdfast.frontends.dot.syntax_errors import Faults, TooManyError, unreadable_error
from holdfast.frontends.dot.token_reader import SkipError
from holdfast.frontends.dot.values import as_text

LARGEST: Final = 32 * 1024 * 1024
"""Maximum number of characters of one pipeline."""


def text_of(source: str | bytes, path: str) -> str:
    """Raises `PipelineSyntaxError` if the source is not text or is too long."""
    text = source if isinstance(source, str) else _decoded(source, path)
    if len(text) > LARGEST:
        raise _too_large(path)
    at = text.find("\0")
    if at >= 0:
        raise unreadable_error(
            "this is not text: it has a NUL character", path, fix=_GIVE_TEXT, place=_place(text, at)
        )
    return text.removeprefix("\ufeff")


_GIVE_TEXT: Final = "give a DOT file, in UTF-8"


def _decoded(data: bytes, path: str) -> str:
    if len(data) > 4 * LARGEST:
        raise _too_large(path)  # a character has at most 4 bytes in UTF-8
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        before = data[: error.start].decode(errors="replace")
        byte = f"{data[error.start]:#04x}"
        raise unreadable_error(
            f"this is not UTF-8 text: invalid byte {byte}", path, fix=_GIVE_TEXT, place=_place(before)
        ) from None


def _too_large(path: str) -> PipelineSyntaxError:
    return unreadable_error(
        f"the pipeline is longer than the maximum of {LARGEST:,} characters",
        path,
        fix="put large texts into separate files and use @file",
        place=SourceLocation(1, 1),
    )


def _place(text: str, at: int | None = None) -> SourceLocation:
    at = len(text) if at is None else at
    return SourceLocation(text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at))


MOST_EXPANDED: Final = 100_000
"""Maximum number of links that groups in edge statements may expand to."""

_GUARDS: Final = frozenset(
    {
        "tool_approval",
        "tools",
        "tool_hooks.pre",
        "tool_hooks.post",
        "agent_permissions",
        "fail_closed",
        "in_doubt",
        "budget_tokens",
        "budget_usd",
        "budget_time",
    }
)
"""What limits a pipeline: without effect, it would run without its limit."""
_OF_GRAPHS: Final = frozenset(
    {
        "goal",
        "model_stylesheet",
        "default_max_retries",
        "default_max_retry",
        "retry_target",
        "fallback_retry_target",
        "default_fidelity",
    }
)


class ParseResult(msgspec.Struct, frozen=True):
    pipeline: Pipeline
    diagnostics: tuple[Diagnostic, ...]
    """Warnings, in the order of the text."""


def parse(source: str | bytes, *, path: str = "", strict: bool = False) -> ParseResult:
    """Raises `PipelineSyntaxError` with every fault that was found."""
    text = text_of(source, path)
    faults = Faults(text, path, strict=strict)
    try:
        pipeline = _Reader(text, path, faults).pipeline()
    except TooManyError:
        faults.raise_if_any()
        raise
    pipeline, ordinary = with_ordinary_names(pipeline)
    for stage, shaped in ordinary:
        message = f"stage {stage.id} is an ordinary stage, because {shaped.id} has shape={shaped.shape}"
        fix = f"rename it, or remove the shape of {shaped.id}"
        faults.warn("ordinary_name", message, stage.place, fix=fix)
    faults.raise_if_any()
    found = sorted(faults.found, key=lambda one: (one.place.line, one.place.column))
    return ParseResult(pipeline, tuple(found))


class _Reader(HeaderReader):
    """Statement by statement. Subgraphs are a list of open scopes, so depth costs no recursion."""

    def __init__(self, source: str, path: str, faults: Faults) -> None:
        super().__init__(TokenBuffer(source, faults), faults, path)
        self._source = source
        self._scope = SubgraphScope(None, 0)
        self._graph = Block()
        self._drafts: dict[str, StageDraft] = {}
        self._links: list[Link] = []
        self._expanded = 0
        self._ids: dict[str, str] = {}

    def pipeline(self) -> Pipeline:
        try:
            name, self._scope.start = self.header()
            self._statements()
            self.require_end()
        except SkipError:
            name = ""
        drafts, shared = self._drafts, SharedAttributes(self.faults.lines)
        return Pipeline(
            name=name,
            attrs=self._graph.attrs,
            places=SourceLocations(self._graph.places, self.faults.lines),
            stages={name: self._stage(name, drafts.pop(name), shared) for name in list(drafts)},
            links=tuple(self._links),
            source=self._source,
            path=self.path,
        )

    def _stage(self, name: str, draft: StageDraft, shared: SharedAttributes) -> Stage:
        found = draft.stage(name, shared)
        if len(draft.base.attrs) > MOST_DEFAULTS or len(found.derived) > DEEPEST:
            message = f"{name} is in too many subgraphs, or has too many defaults"
            self.faults.error(message, found.place, fix="use it in fewer subgraphs")
        return found

    def _statements(self) -> None:
        while True:
            try:
                if self._statement():
                    return
            except SkipError:
                self.recover()

    def _statement(self) -> bool:
        """True at the end of the pipeline."""
        self.refill()
        kind = self.kinds[self.at]
        if kind in NAMES and self.kinds[self.at + 1] == "=":
            self._assign()
        elif kind == WORD:
            self._worded()
        elif kind == ";":
            self.at += 1
        elif kind == "}":
            return self._close()
        elif kind == "{":
            self.faults.lenient(
                "the group has no keyword subgraph", self.starts[self.at], fix="write subgraph { ... }"
            )
            self._open(None)
        elif kind in NAMES:
            self._named()
        elif kind == END:
            self._left_open()
            return True
        else:
            self.fail(
                f"a statement cannot start with {self.texts[self.at]}", self.starts[self.at], "remove it"
            )
        return False

    def _left_open(self) -> None:
        if self.is_cut:
            return
        message = "this { is not closed" if self._scope.parent is None else "this subgraph is not closed"
        self.faults.error(message, self._scope.start, fix="close it with }")

    def _worded(self) -> None:
        following = self.kinds[self.at + 1]
        word = self.texts[self.at].lower()
        if word in ("graph", "node", "edge") and following == "[":
            self._defaults(word)
        elif word == "subgraph" and following not in (ARROW, "[", ";", "}", END):
            self._open(None)
        elif word in ("digraph", "graph", "strict") and following in (WORD, STRING, "{"):
            self.fail(
                "a graph cannot be inside the pipeline",
                self.starts[self.at],
                "write subgraph, or a second file",
            )
        else:
            self._named()

    def _assign(self) -> None:
        """`key = value` of the graph, or of the subgraph that is open."""
        start = self.starts[self.at]
        if "." in self.texts[self.at]:
            fix = "write graph [key=value]"
            self.faults.lenient(
                f"the dotted attribute {self.texts[self.at]} is outside of brackets", start, fix=fix
            )
        block = Block()
        self.attribute(block)
        self._set_graph(block, start)

    def _set_graph(self, block: Block, start: int) -> None:
        if self._scope.parent is None:
            self._graph.update(block)
            return
        if "label" in block.attrs:
            self._scope.label = as_text(block.attrs["label"])
        for key in sorted(_OF_GRAPHS & block.attrs.keys()):
            fix = "write it outside of the subgraph"
            self.faults.lenient(f"{key} has no effect in a subgraph and was ignored", start, fix=fix)
        for key in sorted(_GUARDS & block.attrs.keys()):
            fix = f"write it at the graph or at the stages; node [{key}=...] is for all stages after it"
            self.faults.error(f"{key} has no effect in a subgraph", start, fix=fix)

    def _defaults(self, word: str) -> None:
        start = self.starts[self.at]
        self._small(word)
        self.at += 1
        block = self.attributes(of_stage=word == "node")
        if word == "graph":
            self._set_graph(block, start)
        elif word == "node":
            self._scope.default_nodes(block)
        else:
            self._scope.default_edges(block)
        if max(len(self._scope.nodes.attrs), len(self._scope.edges.attrs)) > MOST_DEFAULTS:
            self.faults.error(
                f"there are more than {MOST_DEFAULTS} defaults", start, fix="set them at the stages"
            )
            raise TooManyError

    def _small(self, word: str) -> None:
        if self.texts[self.at] != word:
            self.faults.lenient(f"{word} must be lower case", self.starts[self.at], fix=f"write {word}")

    def _named(self) -> None:
        """A stage, or the first stage of an edge."""
        start = self.starts[self.at]
        name = self._id()
        following = self.kinds[self.at]
        if following == ARROW:
            chain = Chain(start)
            chain.groups.append([self._mention(name, start)])
            self._follow(chain)
        elif following == "[":
            self._declare(name, start, self.attributes(of_stage=True))
        elif following == UNDIRECTED:
            self.fail("edges of a pipeline are directed", self.starts[self.at], "write -> instead of --")
        else:
            self._bare(name, start, following)

    def _bare(self, name: str, start: int, following: str) -> None:
        if following == ",":
            self.fail("unexpected comma between stages", self.starts[self.at], "write a statement for each")
        if self._scope.chain is not None:
            self._mention(name, start)
        else:
            self._declare(name, start, Block())

    def _id(self) -> str:
        """The id here, with its port if there is one. Each form is reported once."""
        kind, text, start = self.kinds[self.at], self.texts[self.at], self.starts[self.at]
        if kind not in NAMES:
            self.fail("an id is missing", start, "name a stage")
        if kind == BAD:
            raise SkipError
        name = self._ids.get(text)
        if name is None:
            name = self._ids[text] = id_of(kind, text, start, self.faults, self.fail)
        self.at += 1
        if self.kinds[self.at] == ":":
            self._port(name)
        return name

    def _port(self, name: str) -> None:
        self.faults.lenient(
            f"the port of {name} was ignored", self.starts[self.at], fix=f"write {name} alone"
        )
        while self.kinds[self.at] == ":" and self.kinds[self.at + 1] in NAMES:
            self.at += 2
            self.refill()

    def _declare(self, name: str, start: int, block: Block) -> None:
        place = self.faults.place(start)
        draft = self._drafts.get(name)
        if draft is None:
            draft = self._drafts[name] = StageDraft(place, self._scope.nodes, self._scope.alone)
        draft.declare(self._scope, block, place)
        self._scope.members.append(name)

    def _mention(self, name: str, start: int) -> str:
        if name not in self._drafts:
            self._drafts[name] = StageDraft(self.faults.place(start), self._scope.nodes, self._scope.alone)
        self._scope.members.append(name)
        return name

    def _follow(self, chain: Chain) -> None:
        """Read an edge statement on from an arrow; a group in it is read first."""
        while self.kinds[self.at] == ARROW:
            self.refill()
            self.at += 1
            if self.kinds[self.at] == "{" or (
                self.is_keyword("subgraph") and self.kinds[self.at + 1] in _OPENS
            ):
                self._open(chain)
                return
            start = self.starts[self.at]
            chain.groups.append([self._mention(self._id(), start)])
        self._link(chain)

    def _open(self, chain: Chain | None) -> None:
        """Open the subgraph that begins here, with `subgraph` or its brace."""
        start = self.starts[self.at]
        if self.kinds[self.at] == WORD:
            self._small("subgraph")
            self.at += 1
            if self.kinds[self.at] in NAMES:
                self.at += 1
        if self.kinds[self.at] != "{":
            self.fail("the subgraph's { is missing", self.starts[self.at], "write subgraph NAME { ... }")
        if chain is not None:
            self.faults.lenient("a group in an edge", start, fix="write an edge for each of its stages")
        if self._scope.depth >= DEEPEST:
            self.faults.error(f"subgraphs are more than {DEEPEST} deep", start, fix="nest them less")
            raise TooManyError
        self._scope = SubgraphScope(self._scope, self.starts[self.at], chain)
        self.at += 1

    def _close(self) -> bool:
        closed = self._scope
        self.at += 1
        if closed.parent is None:
            return True
        self._scope = closed.parent
        members = list(dict.fromkeys(closed.members))
        self._scope.members.extend(members)
        chain = closed.chain
        if chain is None and self.kinds[self.at] == ARROW:
            self.faults.lenient(
                "a group in an edge", closed.start, fix="write an edge for each of its stages"
            )
            chain = Chain(closed.start)
        if chain is not None:
            chain.groups.append(members)
            self._follow(chain)
        return False

    def _link(self, chain: Chain) -> None:
        block = self.attributes(of_stage=False) if self.kinds[self.at] == "[" else Block()
        if self.kinds[self.at] in (UNDIRECTED, ","):
            self.fail("an edge continues with ->", self.starts[self.at], "write -> or a new statement")
        block = self._scope.edges.under(block)
        place = self.faults.place(chain.start)
        places = SourceLocations(block.places, self.faults.lines)
        for sources, targets in pairwise(chain.groups):
            self._count(sources, targets, chain.start)
            for source in sources:
                self._links += [
                    Link(source=source, target=target, attrs=block.attrs, places=places, place=place)
                    for target in targets
                ]

    def _count(self, sources: list[str], targets: list[str], start: int) -> None:
        links = len(sources) * len(targets)
        self._expanded += links if links != 1 else 0
        if self._expanded > MOST_EXPANDED:
            self.faults.error(
                f"groups expand to more than {MOST_EXPANDED:,} edges", start, fix="write edges without groups"
            )
            raise TooManyError


_OPENS: Final = frozenset({"{", WORD, STRING, NUMBER})
