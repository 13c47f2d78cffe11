"""The properties themselves; the tests run them on few examples, the soak on many."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import note
from hypothesis import strategies as st

from holdfast.model.breakpoints import SUFFIX, place_of, places
from holdfast.model.graph import Graph
from holdfast.types.record import Kind
from tests.properties.graphs import Plan, Taste
from tests.properties.play import Choose, Play, fold, graph_at, look

EVERYTHING = Taste(joins=True, depth=2)
# Independence of arrival order is claimed for `all` joins only (D-25).
STEADY = Taste(joins=False, depth=1)
DEEP = Taste(joins=False, depth=2, size=3)

ENDS = {"completed", "failed", "cancelled"}


def chooser(data: st.DataObject) -> Choose:
    return lambda count: data.draw(st.integers(0, count - 1)) if count > 1 else 0


def shuffler(data: st.DataObject) -> Choose:
    """As a chooser, but with one draw only: for long plays."""
    rng = data.draw(st.randoms(use_true_random=False))
    return lambda count: rng.randrange(count)


def deterministic(plan: Plan, choose: Choose) -> None:
    """Each step is decided twice, live and from a stored copy of the position."""
    Play(plan, choose, twins=True, noise=True).start().to_end()


def folds(plan: Plan, choose: Choose) -> None:
    """Readers who start at the first record, or at a snapshot of any moment, see what the worker sees."""
    play = Play(plan, choose, noise=True).start()
    for _ in range(400):
        if choose(3) == 0:
            play.snapshot(whole=choose(2) == 0)
        if play.ended or not play.go_on():
            break
    assert look(fold(plan.graph, play.journal)) == look(play.pos)


def ends(plan: Plan, choose: Choose) -> None:
    """Completed, failed or cancelled: never a silent stop, and nothing left undecided."""
    play = Play(plan, choose, noise=True).start()
    moment = choose(60)
    for at in range(400):
        if at == moment and not play.ended and play.pos.failing is None:
            play.cancel()
        if play.ended:
            break
        assert play.go_on(), ["stopped in silence", *play.trail()]
    assert play.ended
    assert play.pos.status in ENDS
    assert [r.kind for r in play.journal].count(Kind.end) == 1
    assert not play.pos.holds
    assert not play.pos.timers
    if play.pos.status == "completed":
        assert not play.pos.execs
        decided(plan.graph, play)


def decided(graph: Graph, play: Play) -> None:
    """Every node of every scope was visited, skipped or abandoned (A; U: with an effect whose outcome nobody
    knows); without a loop never two of these."""
    moves = play.moves()
    gone = [play.below(move) for move in moves if move[0] in "WAU"]
    done = {(r.scope, r.node, "visited") for r in play.journal if r.kind == Kind.step}
    done |= {(s, graph_at(graph, s).nodes[a].id, "skipped") for what, s, a, _ in moves if what == "K"}
    done |= {(s, graph_at(graph, s).nodes[a].id, "abandoned") for what, s, a, _ in moves if what in "AU"}
    for scope in {move[1] for move in moves if not any(move[1].startswith(path) for path in gone)}:
        inner = graph_at(graph, scope)
        looping = {i for loop in inner.loops.values() for i in loop.body}
        for i, node in enumerate(inner.nodes):
            ways = {way for s, name, way in done if (s, name) == (scope, node.id)}
            assert ways, f"{scope}{node.id} was never decided"
            assert len(ways) == 1 or i in looping, f"{scope}{node.id} was {' and '.join(sorted(ways))}"


def resumes(plan: Plan, choose: Choose) -> None:
    """Whatever record was the last one written, going on from it leads to the same end."""
    play = Play(plan, choose).start().to_end()
    assert play.ended
    upto = choose(len(play.journal))
    again = Play(plan, choose).resume(play.journal, upto).to_end()
    note("\n".join(play.trail()))
    note(f"resumed after {upto}:")
    note("\n".join(again.trail()[upto + 1 :]))
    assert again.ended, "stopped in silence after a resume"
    same_end(play, again)


def order_free(plan: Plan, choose: Choose) -> None:
    """Two orders of arrival, one result."""
    one = Play(plan, choose).start().to_end()
    two = Play(plan, choose).start().to_end()
    note("\n".join(one.trail()))
    note("the other order:")
    note("\n".join(two.trail()))
    same_end(one, two)


def stops(plan: Plan, choose: Choose) -> None:
    """With breakpoints anywhere, each continued, a run ends as without; also when resumed amid them. It has
    stood still before every visit of those nodes."""
    plain = Play(plan, choose).start().to_end()
    named = [place for place, _, _ in places(plan.graph) if choose(3) == 0]
    play = Play(plan, choose, breaks=named).start().to_end()
    again = Play(plan, choose).resume(play.journal, choose(len(play.journal))).to_end()
    note(f"stopping at {named}:")
    note("\n".join(play.trail()))
    for each in (play, again):
        assert each.ended
        same_end(plain, each)
        stood = {(r.scope, r.node, r.visit) for r in each.journal if r.node.endswith(SUFFIX)}
        for scope, node, visit, _ in each.ending().settled:
            assert ((scope, node + SUFFIX, visit) in stood) == (place_of(scope, node) in named)


def same_end(one: Play, two: Play) -> None:
    a, b = one.ending(), two.ending()
    assert a.status == b.status
    if a.status == "completed":
        assert a.state == b.state
        assert a.settled == b.settled
        assert a.skipped == b.skipped


Check = Callable[[Plan, Choose], None]
