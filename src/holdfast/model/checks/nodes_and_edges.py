"""Rules for nodes and edges, and whether every node can be reached."""

from __future__ import annotations

from collections import Counter

from holdfast.model.checks.coverage import policy_targets
from holdfast.model.checks.graph_view import ValidationView
from holdfast.model.graph import END, START, EdgeKind


def check_structure(view: ValidationView) -> None:
    _node_ids(view)
    _endpoints(view)
    _edge_ids(view)
    _starts(view)
    _unreachable(view)
    _otherwise(view)
    _mixed(view)


def _node_ids(view: ValidationView) -> None:
    if not view.spec.nodes:
        view.error("no-nodes", "the flow has no nodes", fix="declare one with @flow.node")
    for name, count in Counter(node.id for node in view.spec.nodes).items():
        if count > 1:
            view.error(
                "duplicate-node", f"{count} nodes have this id", node=name, fix="give one of them another id="
            )
        if name in (START, END):
            view.error("sentinel-id", "the id is reserved", node=name, fix="choose another id")
        elif not name or "/" in name or not name.isprintable():
            view.error(
                "node-id", f"{name!r} cannot be an id", node=name, fix="use printable text without '/'"
            )


def _endpoints(view: ValidationView) -> None:
    for edge in view.spec.edges:
        if edge.source not in view.nodes:
            view.error(
                "edge-source", f"there is no node {edge.source!r}", edge=edge.id, fix=_near(view, edge.source)
            )
        if edge.target == START:
            fix = "let it lead to the first node"
            view.error("edge-target", "an edge cannot lead to the start", edge=edge.id, fix=fix)
        elif edge.target != END and edge.target not in view.nodes:
            view.error(
                "edge-target", f"there is no node {edge.target!r}", edge=edge.id, fix=_near(view, edge.target)
            )


def _near(view: ValidationView, name: str) -> str:
    from difflib import get_close_matches

    # Searching for similar names among thousands would take longer than all other rules together.
    near = get_close_matches(name, list(view.nodes)[:500], n=1)
    return f"did you mean {near[0]!r}?" if near else "declare the node, or remove the edge"


def _edge_ids(view: ValidationView) -> None:
    for name, count in Counter(edge.id for edge in view.spec.edges).items():
        if count > 1:
            view.error("duplicate-edge", f"{count} edges have this id", edge=name, fix="give one another id=")


def _starts(view: ValidationView) -> None:
    if not view.spec.start and view.spec.nodes:
        view.error(
            "no-start",
            "every node has an incoming edge, so there is no first node",
            fix="call flow.start(node)",
        )
    for name in view.spec.start:
        if name not in view.nodes:
            view.error("start-unknown", f"the start {name!r} does not exist", fix=_near(view, name))
        elif not view.walk and view.into[name]:
            source = view.into[name][0].source
            view.error(
                "start-with-edge",
                f"it is a start, and {source!r} leads to it too: it would run twice",
                node=name,
                fix=f"remove it from flow.start, or declare flow.loop({source}, {name})",
            )


def _unreachable(view: ValidationView) -> None:
    todo = [name for name in (*view.spec.start, *_jumps(view)) if name in view.nodes]
    seen = set(todo)
    while todo:
        for edge in view.out[todo.pop()]:
            if edge.target not in seen and edge.target != END:
                seen.add(edge.target)
                todo.append(edge.target)
    if not view.spec.start:
        return
    for name in view.nodes:
        if name not in seen:
            view.error("unreachable", "no edge leads to it", node=name, fix="add an edge to it, or remove it")


def _jumps(view: ValidationView) -> list[str]:
    """Where a walk may go without an edge."""
    spec = view.spec
    targets = [spec.retry_target, spec.fallback_retry_target]
    for node in spec.nodes:
        if node.walk is not None:
            targets += [node.walk.retry_target, node.walk.fallback_retry_target]
            for target in (node.walk.retry_target, node.walk.fallback_retry_target):
                if target is not None and target not in view.nodes:
                    view.error(
                        "retry-target",
                        f"its retry target {target!r} does not exist",
                        node=node.id,
                        fix=_near(view, target),
                    )
    return [target for target in targets if target is not None]


def _otherwise(view: ValidationView) -> None:
    for edges in view.out.values():
        kinds = {edge.kind for edge in edges}
        if EdgeKind.otherwise in kinds and not kinds & {EdgeKind.when, EdgeKind.chosen}:
            edge = next(edge for edge in edges if edge.kind is EdgeKind.otherwise)
            view.error(
                "otherwise",
                f"it is taken when no other condition holds, but {edge.source!r} has no conditional edge",
                edge=edge.id,
                fix="add an edge with when=..., or drop otherwise=True",
            )


def _mixed(view: ValidationView) -> None:
    """An edge without a condition is taken beside those whose conditions hold; it may be meant for the other
    cases, and then leads around them."""
    if view.walk:
        return
    for name, edges in view.out.items():
        named = policy_targets(view.nodes[name])
        conditional = [
            edge
            for edge in edges
            if edge.kind is EdgeKind.when or (edge.kind is EdgeKind.chosen and edge.target not in named)
        ]
        for edge in edges if conditional else ():
            if edge.kind is EdgeKind.always:
                view.warn(
                    "edge-mixed",
                    f"it is always taken, also where the condition of {conditional[0].id!r} beside it holds",
                    edge=edge.id,
                    fix="write otherwise=True if it is for the other cases, else give it when=",
                )
