"""The scale of a timeline's bars."""

from __future__ import annotations

import pytest

from holdfast.checkpoint.visit import Visit, Wait
from holdfast.cli.output.timeline import Axis, bar

DAY = 86_400_000_000
SECOND = 1_000_000


def visit(node: str, start: int, end: int | None, *waits: Wait, scope: str = "") -> Visit:
    return Visit(node=node, scope=scope, visit=1, started_at=start, ended_at=end, waits=list(waits))


@pytest.mark.covers("TOOL-CLI-05")
def test_a_wait_of_days_leaves_room_for_what_was_done() -> None:
    asked = Wait(kind="person", since=SECOND, until=3 * DAY)
    shown = [
        visit("plan", 0, SECOND),
        visit("ask", SECOND, 3 * DAY, asked),
        visit("pay", 3 * DAY, 3 * DAY + SECOND),
    ]

    axis = Axis(shown, 23, 0)

    assert axis.cut
    assert [bar(one, axis, 23, 0) for one in shown] == [
        "███████████            ",
        "          ░░█          ",
        "            ███████████",
    ]


@pytest.mark.covers("TOOL-CLI-05")
def test_bars_are_to_scale_where_nothing_is_cut() -> None:
    shown = [visit("a", 0, 2 * SECOND), visit("b", 2 * SECOND, 8 * SECOND)]

    axis = Axis(shown, 8, 0)

    assert not axis.cut
    assert [bar(one, axis, 8, 0) for one in shown] == ["███     ", "  ██████"]


def test_a_node_around_others_is_not_at_work_while_they_wait() -> None:
    asked = Wait(kind="person", since=SECOND)
    shown = [visit("each", 0, None), visit("ask", 0, None, asked, scope="each.1[0]/")]

    axis = Axis(shown, 20, DAY)

    assert axis.cut
    assert bar(shown[1], axis, 20, DAY).count("░") == 3


def test_a_run_of_no_time_at_all_has_bars() -> None:
    shown = [visit("a", 5, 5), visit("b", 5, 5)]

    assert [bar(one, Axis(shown, 4, 5), 4, 5) for one in shown] == ["█   ", "█   "]
