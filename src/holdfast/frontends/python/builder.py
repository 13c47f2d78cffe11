"""Flows in Python: functions become nodes, and edges are declared one by one.

A builder only collects. All problems are reported together by `problems()` and `compile()`, so that a flow
with five mistakes shows five.
"""

# ruff: noqa: A002  (`id` is what users call it)

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, cast

import msgspec

from holdfast.errors import SettingsError
from holdfast.frontends.python.builder_edges import Edges
from holdfast.frontends.python.builder_nodes import Nodes
from holdfast.frontends.python.declarations import Collector, DeclaredMigration
from holdfast.frontends.python.guard import Guard
from holdfast.frontends.python.handle import NodeHandle, node_id
from holdfast.frontends.python.policies import Join, all_of
from holdfast.model.diagnostics import GraphProblem, require_valid
from holdfast.model.failure_tolerance import Tolerance, read_tolerance
from holdfast.model.graph import MapSpec, Node, NodeKind, SubflowSpec
from holdfast.model.migration import Migration, Restate
from holdfast.model.program import Program
from holdfast.types.concurrency_limits import ItemLimit, item_limit
from holdfast.types.status import Effect

if TYPE_CHECKING:
    from holdfast.frontends.python.lower import LoweredFlow


class Migrations(Collector):
    """How a flow declares the migration of runs of its older versions."""

    def migrate(
        self,
        from_: Collector | str,
        *,
        to: str = "",
        rename: Mapping[str, str] | None = None,
        state: Restate | Mapping[str, Any] | None = None,
        drop: Iterable[str] = (),
    ) -> None:
        """Declare how a run of the version `from_` (a flow, a label or a fingerprint) migrates to this one.

        `rename`: old node -> new node. `state`: a function from the old state to the new, or a mapping of
        field -> default, `renamed("old")` or a function of the old state. `drop`: fields to remove.
        `to`: the label of the version in between, for one step of a chain whose code no longer exists.

        Declaring it migrates no run: `holdfast flows migrate` does.
        """
        self.revision += 1
        names = {node_id(old): node_id(new) for old, new in (rename or {}).items()}
        source = from_ if isinstance(from_, str) else ""
        if isinstance(from_, str) and not from_:
            self.wrong(
                "migration", "the migration has no source", fix="name a flow, a label or a fingerprint"
            )
        if len(set(names.values())) != len(names):
            self.wrong("migration", "two nodes are renamed to one", fix="rename each node to a different one")
        dropped = (drop,) if isinstance(drop, str) else tuple(drop)
        fields: dict[str, Any] = {}
        if isinstance(state, Mapping):
            fields, state = dict(cast("Mapping[str, Any]", state)), None
        elif state is not None and not callable(state):
            self.wrong("migration", f"state={state!r} is neither a function nor a mapping")
            state = None
        migration = Migration(
            source=source, target=to, rename=names, state=state, fields=fields, drop=dropped
        )
        self.migrations.append(DeclaredMigration(source=from_, migration=migration))


class FlowBuilder(Nodes, Edges, Migrations):
    """Builds a graph; `holdfast.Flow` runs it."""

    _compiled: tuple[int, Program] | None = None

    def map(
        self,
        id: str,
        *,
        over: str,
        body: Callable[..., Any] | FlowBuilder,
        into: str,
        concurrency: int = 0,
        rate: str | None = None,
        limit_key: str | None = None,
        effect: str | None = None,
        on_item_failure: str = "fail",
        tolerated_failures: int | str | None = None,
        min_successes: int | None = None,
        item_key: str | None = None,
        join: Join | str = "all",
        on_failure: str = "abort",
        checkpoint: str | None = None,
        guard: Guard | None = None,
        breakpoint: bool = False,
        **item: Any,
    ) -> NodeHandle[..., Any]:
        """Run `body` for each item of the list at `over`, at most `concurrency` at once (0: all).

        A function gets the item first (`fn(item)`, `fn(item, ctx)`), and by their names its `index` and its
        `key` (what the expression `item_key` gives over the item). What it returns is the item's result; the
        results, in the order of the items, are written to the field `into`. Further options (`retry`,
        `timeout`, `idempotency_key`, ...) are those of the item's node; `guard` and `breakpoint` are the
        map's.

        `rate` ("10/s", "100/min"): items start at even distances, at most so many in any such period. With
        `limit_key`, a text with placeholders that the item fills ("mail:{{customer}}"), `concurrency` and
        `rate` hold for all items with that key, in all maps and runs of the tenant.

        With `tolerated_failures` (a count, or a share such as "10%") or `min_successes`, failed items are
        among the results, and the map fails when there are too many.
        """
        if join not in ("all", all_of()):
            self.wrong("join", "join= of a map is about the edges into it, not about its items", node=id,
                       fix="for items write min_successes= or tolerated_failures=; to join edges put a node "
                       "before the map")  # fmt: skip
        limit = self._item_limit(id, rate, concurrency, limit_key)
        child = body if isinstance(body, FlowBuilder) else self._item_flow(id, body, effect, item, limit)
        if isinstance(body, FlowBuilder) and (item or effect or limit):
            fix = "set the options at the nodes of that flow; rate= and limit_key= need a function as body"
            self.wrong("option", "a map over a flow takes no options for its items", node=id, fix=fix)
        # With a key for each item, of that key and not of the map.
        at_once = 0 if "{{" in str(limit_key) else concurrency
        spec = MapSpec(
            over=over, body=child.name, into=into, concurrency=at_once, on_item_failure=on_item_failure,
            tolerance=self._tolerance(id, tolerated_failures, min_successes),
            key=msgspec.UNSET if item_key is None else item_key,
        )  # fmt: skip
        options = {
            "join": join, "on_failure": on_failure, "checkpoint": checkpoint, "guard": guard,
            "breakpoint": breakpoint,
        }  # fmt: skip
        node = Node(id=id, kind=NodeKind.map, effect=Effect.pure, map=spec, **self.policies(id, options))
        self._adopt(id, child)
        return self.plain(node, options)

    def _tolerance(self, id: str, failures: Any, successes: Any) -> Tolerance | msgspec.UnsetType:
        def wrong(what: str, fix: str) -> None:
            self.wrong("tolerance", what, node=id, fix=fix)

        found = read_tolerance(failures, successes, wrong)
        return found if found.given else msgspec.UNSET

    def _item_flow(
        self,
        id: str,
        body: Callable[..., Any],
        effect: str | None,
        options: dict[str, Any],
        limit: ItemLimit | None,
    ) -> FlowBuilder:
        fn: Callable[..., Any] = getattr(body, "fn", None) or body
        child = FlowBuilder(f"{id}.item", effect=self.default_effect, types=self.types)
        child.is_item = True
        if limit is not None:
            # Loaded by the first flow that has one.
            from holdfast.frontends.python.limited_map import limited_body

            def wrong(what: str, fix: str) -> None:
                self.wrong("option", what, node=id, fix=fix)

            fn = limited_body(fn, limit, effect or self.default_effect, options, wrong)
            child.task(fn, options, script=True, first="item")
            return child
        child.task(fn, {**options, "effect": effect}, script=False, first="item")
        return child

    def _item_limit(self, id: str, rate: Any, concurrency: int, key: Any) -> ItemLimit | None:
        if callable(key):
            self.wrong("item-limit", "limit_key= of a map of a flow is a function", node=id,
                       fix='write a text with placeholders: limit_key="mail:{{customer}}"')  # fmt: skip
            return None
        try:
            return item_limit(rate, concurrency or None, key)
        except SettingsError as error:
            self.wrong("item-limit", error.message.rstrip("."), node=id, fix=error.hint or "correct it")
            return None

    def subflow(
        self,
        id: str,
        flow: FlowBuilder,
        *,
        inputs: Mapping[str, str] | None = None,
        outputs: Mapping[str, str] | None = None,
        **policies: Any,
    ) -> NodeHandle[..., Any]:
        """Run another flow as one node.

        `inputs`: the child's field -> an expression over this flow's state (default: the whole state).
        `outputs`: a field of this flow -> a path into the child's `state`, `artifacts` or `output`.
        """
        spec = SubflowSpec(
            body=flow.name,
            inputs=None if inputs is None else dict(inputs),
            outputs=None if outputs is None else dict(outputs),
        )
        node = Node(
            id=id, kind=NodeKind.subflow, effect=Effect.pure, subflow=spec, **self.policies(id, policies)
        )
        self._adopt(id, flow)
        return self.plain(node, policies)

    def _adopt(self, id: str, child: FlowBuilder) -> None:
        known = self.children.setdefault(child.name, child)
        if known is not child:
            self.wrong(
                "subflow-name",
                f"two different sub-flows are called {child.name!r}",
                node=id,
                fix="give each flow a different name",
            )

    def problems(self) -> list[GraphProblem]:
        """All results of validation, including warnings and hints."""
        return self._lowered().problems

    def compile(self) -> Program:
        """Compiles again only after a change. Raises FlowInvalidError that lists every error."""
        stamp = self.stamp()
        if self._compiled is None or self._compiled[0] != stamp:
            lowered = self._lowered()
            require_valid(self.name, lowered.problems)
            self._compiled = (stamp, lowered.program())
        return self._compiled[1]

    def _lowered(self) -> LoweredFlow:
        # Imported on first use: a program that only declares flows needs none of the checks.
        from holdfast.frontends.python.lower import lower

        return lower(self)
