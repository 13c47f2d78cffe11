"""Agents in a trace: each call of a model or a tool is a span with the names of the conventions."""

from __future__ import annotations

import contextlib
import json
import warnings

import pytest
from opentelemetry.trace import SpanKind, StatusCode

from holdfast import Agent, Flow, Holdfast, Prices, tool
from holdfast.agents.messages import TokenUsage
from holdfast.agents.scripted import Scripted, tool_call
from holdfast.errors import ModelError, WaitTimeoutError
from holdfast.integrations.otel import conventions, private_names
from holdfast.testing.clock import FakeClock
from holdfast.testing.human import Human
from holdfast.types.redaction import redactor
from tests.integrations.otel.conftest import Exported

pytestmark = pytest.mark.anyio
SAID = "the tide in Emden"


@tool(effect="read")
async def search(query: str) -> str:
    return f"found {query}"


def _asked(*turns: object) -> Flow:
    model = Scripted(
        *turns,
        name="tiny-1",
        prices=Prices(input=2, output=10),
        tokens=TokenUsage(input=100, output=20, cached=40),
    )
    flow = Flow("tides", effect="read")
    flow.agent("ask", Agent("researcher", model=model, tools=[search]), prompt=SAID)
    return flow


async def _answered(exported: Exported, flow: Flow, **options: object) -> None:
    async with exported.watch(Holdfast("memory:"), **options) as hf:
        await flow.run({}, on=hf, thread="t-1")


@pytest.mark.covers("IN-92", "USERS-OTEL")
async def test_each_call_of_a_model_and_a_tool_is_a_child_of_its_step(exported):
    await _answered(exported, _asked(tool_call("search", query=SAID), "Twice a day."))
    step, root = exported.span("ask"), exported.span("run tides")
    chats = [span for span in exported.spans if span.name == "chat tiny-1"]
    used = exported.span("execute_tool search")
    assert len(chats) == 2
    assert {span.parent.span_id for span in (*chats, used)} == {step.context.span_id}
    assert {span.kind for span in chats} == {SpanKind.CLIENT}
    assert chats[0].attributes["gen_ai.operation.name"] == "chat"
    assert chats[0].attributes["gen_ai.provider.name"] == "scripted"
    assert chats[0].attributes["gen_ai.request.model"] == "tiny-1"
    assert chats[0].attributes["gen_ai.usage.input_tokens"] == 100
    assert chats[0].attributes["gen_ai.usage.output_tokens"] == 20
    assert chats[0].attributes["gen_ai.usage.cache_read.input_tokens"] == 40
    assert used.attributes["gen_ai.tool.name"] == "search"
    assert used.attributes["gen_ai.tool.call.id"] == "call_1_1"
    assert step.attributes["gen_ai.operation.name"] == "invoke_agent"
    assert step.attributes["gen_ai.agent.name"] == "researcher"
    assert root.attributes["gen_ai.operation.name"] == "invoke_workflow"
    assert root.attributes["gen_ai.workflow.name"] == "tides"
    assert {span.attributes["gen_ai.conversation.id"] for span in (root, step, used, *chats)} == {"t-1"}


@pytest.mark.covers("USERS-OTEL")
async def test_tokens_and_cost_are_counted(exported):
    await _answered(exported, _asked(tool_call("search", query=SAID), "Twice a day."))
    assert exported.metric("holdfast.tokens") == {("tides", "ask"): 240}
    (cost,) = exported.metric("holdfast.cost").values()
    assert cost == pytest.approx(2 * (100 * 2 + 20 * 10) / 1e6)
    chat, model = "chat", "tiny-1"
    assert exported.metric("gen_ai.client.token.usage") == {
        (chat, "scripted", model, "input"): 2,
        (chat, "scripted", model, "output"): 2,
    }
    assert exported.metric("gen_ai.client.operation.duration") == {
        (chat, "scripted", model): 2,
        ("execute_tool", "search"): 1,
    }


@pytest.mark.covers("IN-92")
async def test_content_leaves_only_on_request_and_without_secrets(exported):
    flow = _asked(tool_call("search", query=SAID), f"Twice a day, {SAID}.")
    await _answered(exported, flow)
    assert SAID not in "".join(span.to_json() for span in exported.spans)
    asked = Exported()
    redactor.learn("Emden")
    try:
        redactor.learn("in Emden")
        await _answered(asked, flow, capture_content=True)
    finally:
        redactor.forget()
    assert "Emden" not in "".join(span.to_json() for span in asked.spans)
    first, second = (span for span in asked.spans if span.name == "chat tiny-1")
    assert json.loads(first.attributes["gen_ai.input.messages"]) == [
        {"role": "user", "parts": [{"type": "text", "content": "the tide ***"}]}
    ]
    roles = [message["role"] for message in json.loads(second.attributes["gen_ai.input.messages"])]
    assert roles == ["user", "assistant", "tool"]
    (said,) = json.loads(second.attributes["gen_ai.output.messages"])
    assert said["parts"] == [{"type": "text", "content": "Twice a day, the tide ***."}]
    used = asked.span("execute_tool search")
    assert json.loads(used.attributes["gen_ai.tool.call.arguments"]) == {"query": "the tide ***"}
    assert used.attributes["gen_ai.tool.call.result"] == "found the tide ***"


async def test_a_call_that_failed_has_the_status_and_type_of_its_error(exported):
    await _answered(exported, _asked(ModelError("out of order")))
    (chat,) = [span for span in exported.spans if span.name.startswith("chat")]
    assert chat.status.status_code is StatusCode.ERROR
    assert chat.attributes["error.type"] == "ModelError"
    assert "out of order" not in chat.to_json()


@pytest.mark.covers("USERS-OTEL")
async def test_waits_for_people_events_and_timers_are_spans(exported):
    flow = Flow("waits", effect="read")

    @flow.script
    async def wait(s, ctx):
        await ctx.sleep(3600)
        with contextlib.suppress(WaitTimeoutError):
            await ctx.wait_for("paid", key="A17", timeout="30m")

    flow.chain(flow.hold("approve", prompt="Well?", options=["yes"]), wait)
    clock = FakeClock(auto=True)
    async with exported.watch(Holdfast("memory:", clock=clock)) as hf:
        human = Human(hf, clock)
        human.answers("yes", to="approve", within="2h")
        result = await human.runs(flow, {})
        clock.advance(hours=1)  # over the time of the event
        result = await flow.resume(result.run_id, on=hf)
    assert result.completed
    waits = {
        span.attributes["holdfast.wait"]: span for span in exported.spans if span.name.startswith("wait ")
    }
    (asked,) = (span for kind, span in waits.items() if kind not in ("sleep", "queue_wait"))
    parents = {exported.span(name).context.span_id: name for name in ("wait", "approve")}
    assert parents[waits["sleep"].parent.span_id] == parents[waits["queue_wait"].parent.span_id] == "wait"
    assert parents[asked.parent.span_id] == "approve"
    hour = 3600 * 10**9
    assert waits["sleep"].end_time - waits["sleep"].start_time >= hour
    assert waits["queue_wait"].attributes["holdfast.how"] == "expired"
    assert waits["queue_wait"].end_time - waits["queue_wait"].start_time >= hour / 2
    assert asked.attributes["holdfast.how"] == "answered"
    assert asked.end_time - asked.start_time >= 2 * hour


@pytest.mark.covers("IN-92")
async def test_spans_of_pydantic_ai_are_children_and_no_chat_is_doubled(exported):
    pydantic_ai = pytest.importorskip("pydantic_ai")
    from pydantic_ai.capabilities.instrumentation import Instrumentation
    from pydantic_ai.models.instrumented import InstrumentationSettings
    from pydantic_ai.models.test import TestModel

    from holdfast.integrations.pydantic_ai import HoldfastDurability

    traced = Instrumentation(InstrumentationSettings(tracer_provider=exported.tracers))
    agent = pydantic_ai.Agent(
        TestModel(), name="support", capabilities=[HoldfastDurability(), traced], output_type=str
    )
    flow = Flow("talk", effect="read")

    @flow.script
    async def talk(s, ctx):
        return {"answer": (await agent.run("hello")).output}

    flow.chain(talk)
    async with exported.watch(Holdfast("memory:")) as hf:
        (await flow.run({}, on=hf)).expect()
    (chat,) = [span for span in exported.spans if span.attributes.get("gen_ai.operation.name") == "chat"]
    by_id = {span.context.span_id: span for span in exported.spans}
    above = [chat]
    while above[-1].parent is not None:
        above.append(by_id[above[-1].parent.span_id])
    assert [span.name for span in above][-2:] == ["talk", "run talk"]


@pytest.mark.covers("IN-92")
def test_the_table_of_names_is_that_of_the_conventions():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from opentelemetry.semconv._incubating.attributes import gen_ai_attributes as attributes
        from opentelemetry.semconv._incubating.metrics import gen_ai_metrics as metrics

        operations = {each.value for each in attributes.GenAiOperationNameValues}
    assert {name: getattr(attributes, name) for name in conventions.ATTRIBUTES} == conventions.ATTRIBUTES
    assert {name: getattr(metrics, name) for name in conventions.METRICS} == conventions.METRICS
    assert set(conventions.OPERATIONS) <= operations


@pytest.mark.covers("IN-3")
async def test_the_sdk_still_has_the_names_that_the_short_way_of_a_span_uses(exported):
    tracer = exported.tracers.get_tracer("holdfast")
    short = private_names.FinishedSpans(tracer)  # an AttributeError names the one that is gone
    place = exported.tracers.get_tracer("x").start_span("x").get_span_context()
    assert short.export("quick", 7, place, (1, 2), {"a": 1})
    span = exported.span("quick")
    assert (span.context.span_id, span.context.trace_id, span.parent) == (7, place.trace_id, place)
    assert span.context.trace_flags.sampled
    assert dict(span.attributes) == {"a": 1}
    assert span.instrumentation_scope.name == "holdfast"


async def test_a_processor_of_the_users_own_sees_the_start_of_every_span(exported):
    from opentelemetry.sdk.trace import SpanProcessor

    started: list[str] = []

    class Marks(SpanProcessor):
        def on_start(self, span, parent_context=None):
            started.append(span.name)

    exported.tracers.add_span_processor(Marks())
    await _answered(exported, _asked("Twice a day."))
    assert sorted(started) == sorted(span.name for span in exported.spans)
