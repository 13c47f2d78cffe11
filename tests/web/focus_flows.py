"""Flows with a form of every kind, an edge that leads up, and records to look at."""

from __future__ import annotations

from typing import Any

from holdfast import Flow
from tests.web.form_flows import kinds
from tests.web.run_flows import letters

__all__ = ["kinds", "letters", "looped"]

looped = Flow[Any]("looped", effect="pure")


@looped.node
def draft(s: dict[str, Any]) -> None: ...


@looped.node
def check_facts(s: dict[str, Any]) -> None: ...


@looped.node
def publish(s: dict[str, Any]) -> None: ...


looped.hold("review", prompt="Is it good?", options=["yes", "again"], bind="said", assignee="user:local")
looped.start("draft")
looped.chain("draft", "check_facts", "review")
looped.loop("review", "draft", when="said == 'again'")
looped.edge("review", "publish", when="said == 'yes'")
