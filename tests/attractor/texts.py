"""Pipelines made at random: documents that texts can say, and texts that are nearly pipelines."""

from __future__ import annotations

from hypothesis import strategies as st

from holdfast.frontends.dot.document import Link, Pipeline, Stage
from holdfast.frontends.dot.scopes import classes_in
from holdfast.frontends.dot.values import UNITS, Duration, Value

LINE = """digraph Release {
    graph [goal="Ship it", default_max_retries=2]
    rankdir=LR // left to right
    node [shape=box, timeout="900s"]
    start [shape=Mdiamond]; exit [shape=Msquare]
    subgraph cluster_loop {
        label = "Loop A"
        edge [weight=3]
        plan [class="a,b", llm_model=gpt-5.2] /* the first */
        plan -> build -> check
    }
    gate [shape=hexagon, human.default_choice=build, prompt="Good?\\nSay \\"yes\\""]
    start -> plan
    check -> gate [condition="outcome=success && context.n!=-1", weight=.5]
    gate -> exit [label="[Y] Yes"]
    gate -> build [label="[N] No", loop_restart=true]
}
"""

_letters = st.characters(exclude_categories=["Cs", "Cc"])
texts = st.text(_letters | st.sampled_from("\n\t\"\\{}[]<>=;,-/#'"), max_size=20)
identifiers = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,6}", fullmatch=True)
ids = identifiers | st.sampled_from(
    ["node", "Graph", "strict", "a b", "1", "2nd", "a-b", "x.y", "prüfen", "[", '"', "true"]
)
keys = (
    identifiers
    | st.from_regex(r"[a-z]{1,4}(\.[a-z_]{1,4}){1,2}", fullmatch=True)
    | st.sampled_from(["a b", "x-y", "1"])
)
durations = st.builds(
    lambda count, unit: Duration(f"{count}{unit}", count * UNITS[unit]),
    st.integers(-1000, 10**9),
    st.sampled_from(list(UNITS)),
)
values: st.SearchStrategy[Value] = (
    texts
    | identifiers
    | st.sampled_from(["true", "false", "12", "-1.5", "900s", "gpt-5.2", "summary:high", "node", "STRICT"])
    | st.integers()
    | st.booleans()
    | st.floats(allow_nan=False, allow_infinity=False)
    | durations
)
blocks = st.dictionaries(
    keys.filter(lambda key: key not in ("class", "node_type", "llm_prompt")), values, max_size=4
)
classes = st.lists(st.from_regex(r"[a-z0-9-]{1,5}", fullmatch=True), max_size=3, unique=True).map(tuple)


@st.composite
def pipelines(draw: st.DrawFn) -> Pipeline:
    """As reading makes them: classes are those of the attribute and the subgraphs, places are left out."""
    names = draw(st.lists(ids, max_size=6, unique=True))
    stages = {name: draw(stages_of(name)) for name in names}
    ends = st.sampled_from(names) if names else st.nothing()
    links = (
        draw(st.lists(st.builds(Link, source=ends, target=ends, attrs=blocks), max_size=8)) if names else []
    )
    return Pipeline(name=draw(ids), attrs=draw(blocks), stages=stages, links=tuple(links))


@st.composite
def stages_of(draw: st.DrawFn, name: str) -> Stage:
    attrs = draw(blocks)
    given = draw(st.none() | texts)
    if given is not None:
        attrs["class"] = given
    derived = draw(classes)
    own = classes_in(given) if given is not None else ()
    return Stage(
        id=name,
        attrs=attrs,
        classes=tuple(dict.fromkeys((*own, *derived))),
        derived=derived,
        explicit=frozenset(draw(st.sets(st.sampled_from(sorted(attrs)))) if attrs else ()),
    )


_WORDS = """digraph graph subgraph strict node edge G a b1 { } [ ] ; , = : + -> -- - > < # // /* */ " ' \\
    label=x shape="box" 900s -1 .5 gpt-5.2 true "text" @f {b c} [x=1 <b>"""
_TOKENS = [*_WORDS.split(), "\n", " "]
soups = st.lists(st.sampled_from(_TOKENS), max_size=60).flatmap(
    lambda tokens: st.sampled_from(["", " "]).map(lambda gap: "digraph G { " + gap.join(tokens))
)


@st.composite
def mutants(draw: st.DrawFn) -> str:
    """A good pipeline with pieces cut out, doubled, moved or replaced."""
    text = LINE
    for _ in range(draw(st.integers(1, 4))):
        begin = draw(st.integers(0, len(text)))
        end = min(len(text), begin + draw(st.integers(0, 30)))
        piece = draw(
            st.sampled_from(["", text[begin:end] * 2, "\0", "\\", '"', "{", "]", "\ufeff", "é"]) | texts
        )
        text = text[:begin] + piece + text[end:]
    return text
