"""A run is a trace: told from what is committed, the same from every process."""

from __future__ import annotations

import logging
from datetime import UTC, datetime

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import Tracer, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, ALWAYS_ON, ParentBased, TraceIdRatioBased
from opentelemetry.trace import StatusCode

from holdfast import Holdfast, Worker
from holdfast.checkpoint.keys import StaticKeys, new_scope, with_scope
from holdfast.integrations.otel import exporter, instrument, trace_id_of
from holdfast.store.memory import MemoryStore
from holdfast.testing.clock import FakeClock
from holdfast.testing.crashpoints import Crash, until_crash
from holdfast.testing.human import Human
from tests.integrations.otel.conftest import Exported
from tests.integrations.otel.flows import SECRET, broken, order, steps

pytestmark = pytest.mark.anyio


async def _ordered(exported, **options):
    clock = FakeClock(auto=True)
    async with exported.watch(Holdfast("memory:", clock=clock), **options) as hf:
        human = Human(hf, clock)
        human.answers("yes", to="approve", within="2h")
        human.answers(SECRET, to="settle")
        return await human.runs(order, {"password": SECRET})


@pytest.mark.covers("TOOL-OTEL-01")
async def test_run_is_a_trace_and_each_step_a_span_when_it_is_instrumented(exported):
    result = await _ordered(exported)
    root = exported.span("run order")
    assert root.parent is None
    assert root.attributes["holdfast.status"] == "completed"
    assert {span.context.trace_id for span in exported.spans} == {trace_id_of(result.run_id)}
    for name in ("quote", "approve", "settle"):
        span = exported.span(name)
        assert span.parent.span_id == root.context.span_id
        assert span.attributes["holdfast.run_id"] == result.run_id
        assert root.start_time <= span.start_time <= span.end_time <= root.end_time
    assert exported.span("quote").attributes["holdfast.effect"] == "read"
    assert exported.span("quote").attributes["holdfast.attempt"] == 2
    assert exported.span("settle").attributes["holdfast.tokens"] == 7


@pytest.mark.covers("TOOL-OTEL-01")
async def test_attempts_sub_steps_and_holds_are_events_of_their_step(exported):
    await _ordered(exported)
    (retried,) = [e for e in exported.span("quote").events if e.name == "node.retried"]
    assert retried.attributes["exception.type"] == "ConnectionError"
    assert [e.name for e in exported.span("approve").events] == ["hold.opened", "hold.answered"]
    waited = exported.span("approve").end_time - exported.span("approve").start_time
    assert waited >= 2 * 3600 * 10**9
    events = [e.name for e in exported.span("settle").events]
    assert events[:2] == ["node.step_done", "hold.opened"]
    assert "hold.answered" in events


async def test_no_value_of_the_users_leaves_with_a_span_when_nobody_asked_for_it(exported):
    await _ordered(exported)
    assert exported.spans
    assert SECRET not in "".join(span.to_json() for span in exported.spans)


async def test_what_a_handler_traces_itself_belongs_to_its_step(exported, monkeypatch):
    monkeypatch.setattr(trace, "get_tracer", lambda name: exported.tracers.get_tracer(name))
    await _ordered(exported)
    assert exported.span("call").parent.span_id == exported.span("quote").context.span_id
    assert exported.span("call").context.trace_id == exported.span("quote").context.trace_id


@pytest.mark.covers("TOOL-OTEL-02")
async def test_segment_links_to_the_one_before_when_the_run_was_paused(exported):
    await _ordered(exported)
    first, second, third = sorted(
        (span for span in exported.spans if span.name == "advance order"),
        key=lambda span: span.attributes["holdfast.term"],
    )
    assert not first.links
    assert first.context.span_id in {link.context.span_id for link in second.links}
    assert exported.span("quote").context.span_id in {link.context.span_id for link in second.links}
    assert second.context.span_id in {link.context.span_id for link in third.links}
    assert first.attributes["holdfast.ended"] == "pending_input"
    assert third.attributes["holdfast.ended"] == "completed"


@pytest.mark.covers("TOOL-OTEL-02")
def test_spans_of_a_resumed_run_link_to_those_before_the_crash(monkeypatch):
    monkeypatch.setattr(exporter, "DELAY", 0)  # what was exported before the crash is what counts here
    clock = FakeClock(auto=True)
    store = MemoryStore(clock)
    before, after = Exported(), Exported()
    run = "5f0c6d1e-8a4b-4c57-9d3e-2b7a1c9e0f44"

    async def die(store):
        hf = before.watch(Holdfast(store, clock=clock))
        await steps.run({}, on=hf, run_id=run)

    assert isinstance(until_crash(die, store, "after_handler", nth=2), Crash)
    assert before.span("first").context.trace_id == trace_id_of(run)
    clock.advance(minutes=5)

    async def go_on(store):
        async with after.watch(Holdfast(store, clock=clock)) as hf:
            return await steps.resume(run, on=hf)

    assert until_crash(go_on, store, "inside_prune").completed
    segment = after.span("advance steps")
    assert before.span("first").context.span_id in {link.context.span_id for link in segment.links}
    assert [span.name for span in after.spans] == ["second", "run steps", "advance steps"]
    assert "node.restarted" in {event.name for event in after.span("second").events}
    assert after.span("second").parent.span_id == before.span("first").parent.span_id


async def test_fork_links_to_the_run_it_branched_off(exported):
    async with exported.watch(Holdfast("memory:")) as hf:
        source = await steps.run({}, on=hf)
        forked = await steps.fork(source.run_id, 1, on=hf)
        assert forked.completed
    (link,) = next(s for s in exported.spans if s.links and s.name == "run steps").links
    assert link.context.trace_id == trace_id_of(source.run_id)


async def test_errors_set_the_status_and_say_more_only_when_asked(exported):
    async with exported.watch(Holdfast("memory:")) as hf:
        await broken.run({}, on=hf)
    for name in ("fall", "run broken"):
        assert exported.span(name).status.status_code is StatusCode.ERROR
        assert exported.span(name).status.description == "ValueError"
    talkative = Exported()
    async with talkative.watch(Holdfast("memory:"), messages=True) as hf:
        await broken.run({}, on=hf)
    assert talkative.span("fall").status.description == f"ValueError: {SECRET}"


async def test_run_goes_on_when_the_exporter_is_broken(caplog):
    class Broken(SpanExporter):
        def export(self, spans) -> SpanExportResult:
            raise OSError("no collector")

    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(Broken()))
    with caplog.at_level(logging.CRITICAL):
        async with Holdfast("memory:") as hf:
            instrument(hf, tracer_provider=provider)
            assert (await steps.run({}, on=hf)).completed
    provider.shutdown()


async def test_run_is_sampled_as_a_whole_when_only_some_are():
    nothing = Exported(ParentBased(ALWAYS_OFF))
    async with nothing.watch(Holdfast("memory:")) as hf:
        await steps.run({}, on=hf)
    assert nothing.spans == []
    some = Exported(ParentBased(TraceIdRatioBased(0.5)))
    async with some.watch(Holdfast("memory:")) as hf:
        runs = [(await steps.run({}, on=hf)).run_id for _ in range(40)]
    traces: dict[int, int] = {}
    for span in some.spans:
        traces[span.context.trace_id] = traces.get(span.context.trace_id, 0) + 1
    assert 0 < len(traces) < len(runs)
    assert set(traces.values()) == {4}  # root, segment and two steps, or nothing


@pytest.mark.covers("TOOL-OTEL-01")
async def test_no_span_of_a_run_is_made_when_its_trace_is_left_out(monkeypatch):
    nothing, made = Exported(ParentBased(TraceIdRatioBased(0))), []
    monkeypatch.setattr(Tracer, "start_span", lambda *_args, **_given: made.append(1))
    async with nothing.watch(Holdfast("memory:")) as hf:
        await steps.run({}, on=hf)
    assert made == []
    assert nothing.metric("holdfast.steps") == {
        ("steps", "first", "success"): 1,
        ("steps", "second", "success"): 1,
    }


class _ByName(TraceIdRatioBased):
    """With the description of the SDK's sampler."""

    def should_sample(self, parent_context, trace_id, name, *args, **given):
        return (ALWAYS_OFF if name == "second" else ALWAYS_ON).should_sample(
            parent_context, trace_id, name, *args, **given
        )


@pytest.mark.parametrize(
    "sampler", [_ByName(1.0), ParentBased(ALWAYS_ON, remote_parent_sampled=_ByName(1.0))]
)
async def test_a_sampler_of_the_program_is_asked_for_each_span(sampler):
    some = Exported(sampler)
    async with some.watch(Holdfast("memory:")) as hf:
        await steps.run({}, on=hf)
    assert sorted(span.name for span in some.spans) == ["advance steps", "first", "run steps"]


async def test_worker_and_a_instance_already_in_use_can_be_instrumented(exported):
    async with Holdfast("memory:") as hf:
        service = await hf.service()
        row, _ = await service.create(steps.program(), {})
        worker = Worker(steps, on=hf)
        exported.watch(worker)
        await worker.run_until_idle()
        await worker.close()
        await steps.run({}, on=hf)
    assert [span.name for span in exported.spans].count("run steps") == 2
    assert trace_id_of(row.id) in {span.context.trace_id for span in exported.spans}


async def test_runs_of_an_encrypted_store_are_reported_like_others(exported, tmp_path):
    keys = with_scope(None, "*", new_scope(datetime.now(UTC)))
    hf = exported.watch(Holdfast(f"sqlite:{tmp_path}/runs.db", keys=StaticKeys(keys)))
    async with hf:
        result = await steps.run({}, on=hf)
        await steps.fork(result.run_id, 1, on=hf)
    assert [span.name for span in exported.spans].count("run steps") == 2
    assert exported.spans[0].name == "first"
