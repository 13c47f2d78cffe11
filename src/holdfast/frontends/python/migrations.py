"""How a flow declares the migration of runs of its older versions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, cast

from holdfast.frontends.python.declarations import Collector, DeclaredMigration
from holdfast.frontends.python.handle import node_id
from holdfast.model.migration import Migration, Restate


class Migrations(Collector):
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
