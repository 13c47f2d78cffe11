"""Every kind of user callable, in a flow that calls a given bad function in its place.

A new kind belongs here: `test_every_declared_callable_has_a_kind` fails until it is added, and then the
matrix calls it with every misbehaviour.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from inspect import isawaitable
from typing import Any, NamedTuple

from holdfast import (
    Agent,
    Context,
    Flow,
    Guard,
    Lookups,
    OpenAI,
    Policy,
    Rule,
    RunStatus,
    Scripted,
    Tool,
    tool,
    tool_call,
)
from holdfast.holds.policies.guardrails import Guardrails

FAILED, ASKS = RunStatus.failed, RunStatus.pending_input
Bad = Callable[[], Any]


class Case(NamedTuple):
    flow: Flow
    ends: RunStatus
    options: Mapping[str, Any] = {}
    given: Mapping[str, Any] = {}
    node: str = ""  # the node that fails, if one does


def node(bad: Bad) -> Case:
    flow = Flow("bad", effect="pure")
    flow.node(id="work")(bad)
    return Case(flow, FAILED, node="work")


def node_with_effect(bad: Bad) -> Case:
    flow = Flow("bad", effect="external")
    flow.node(id="work")(bad)
    return Case(flow, ASKS)


def node_with_timeout(bad: Bad) -> Case:
    flow = Flow("bad", effect="pure")
    flow.node(id="work", timeout=60)(bad)
    return Case(flow, FAILED, node="work")


def node_beside_another(bad: Bad) -> Case:
    """Two nodes at once: each handler has a task of its own."""
    flow = Flow("bad", effect="pure")

    @flow.node
    async def other() -> None:
        return None

    flow.node(id="work")(bad)
    flow.start("work", other)
    return Case(flow, FAILED, node="work")


def step(bad: Bad) -> Case:
    flow = Flow("bad", effect="pure")

    @flow.script
    async def work(ctx: Context) -> None:
        await ctx.step("bad", bad, effect="read")

    return Case(flow, FAILED, node="work")


def step_with_effect(bad: Bad) -> Case:
    flow = Flow("bad", effect="pure")

    @flow.script
    async def work(ctx: Context) -> None:
        await ctx.step("bad", bad)

    return Case(flow, ASKS)


def step_of_sync_script(bad: Bad) -> Case:
    flow = Flow("bad", effect="pure")

    @flow.script
    def work(ctx: Any) -> None:
        ctx.step("bad", bad, effect="read")

    return Case(flow, FAILED, node="work")


def branch_of_script(bad: Bad) -> Case:
    """The function of an item is code of the script, in a task of its own."""
    flow = Flow("bad", effect="pure")

    async def weigh(item: int) -> Any:
        found = bad()
        return await found if isawaitable(found) else found

    @flow.script
    async def work(ctx: Context) -> None:
        await ctx.map(weigh, [1, 2])

    return Case(flow, FAILED, node="work")


def map_body(bad: Bad) -> Case:
    flow = Flow("bad", effect="pure")
    flow.map("each", over="items", body=bad, into="found")
    return Case(flow, FAILED, given={"items": [1, 2]})


def condition(bad: Bad) -> Case:
    flow = _ways()
    flow.edge("first", "second", when=bad)
    flow.edge("first", "third", otherwise=True)
    return Case(flow, FAILED, node="first")


def loop_condition(bad: Bad) -> Case:
    flow = _ways()
    flow.chain("first", "second")
    flow.loop("second", "first", when=bad, max=3)
    flow.edge("second", "third", otherwise=True)
    return Case(flow, FAILED, node="second")


def router(bad: Bad) -> Case:
    flow = _ways()
    flow.router("first", bad, ["second", "third"])
    return Case(flow, FAILED, node="first")


def branch(bad: Bad) -> Case:
    flow = _ways()
    flow.branch("first", bad, {"a": "second", "b": "third"})
    return Case(flow, FAILED, node="first")


def router_after_effect(bad: Bad) -> Case:
    """The effect is recorded before its router is called."""
    flow = _ways("external")
    flow.router("first", bad, ["second", "third"])
    return Case(flow, FAILED, node="first")


def _ways(effect: str = "pure") -> Flow:
    flow = Flow("bad", effect="pure")

    async def nothing() -> None:
        return None

    flow.node(id="first", effect=effect)(nothing)
    flow.node(id="second")(nothing)
    flow.node(id="third")(nothing)
    flow.start("first")
    return flow


def guardrail(bad: Bad) -> Case:
    flow = Flow("bad", effect="pure")
    flow.guardrail("check")(bad)
    return Case(flow, FAILED, node="check")


def guard(bad: Bad) -> Case:
    flow = Flow("bad", effect="pure")

    async def passes() -> bool:
        return True

    @flow.node(guard=Guard(input=[passes, bad]))
    async def work() -> None:
        return None

    return Case(flow, FAILED)


def custom_reducer(bad: Bad) -> Case:
    flow = Flow("bad", effect="pure", reducers={"total": lambda _old, _new: bad()})

    @flow.node
    async def work() -> dict[str, int]:
        return {"total": 2}

    return Case(flow, FAILED, given={"total": 1}, node="work")


def reducer_of_results(bad: Bad) -> Case:
    """The engine combines what the items came to with the state's value: no handler runs."""
    flow = Flow("bad", effect="pure", reducers={"total": lambda _old, _new: bad()})

    async def body() -> int:
        return 2

    flow.map("work", over="items", body=body, into="total")
    return Case(flow, FAILED, given={"total": [1], "items": [1]}, node="work")


def state_type(bad: Bad) -> Case:
    @dataclass
    class State:
        ready: bool = False

        def __post_init__(self) -> None:
            if self.ready:
                bad()

    flow = Flow("bad", state=State, effect="pure")

    @flow.node
    async def first() -> dict[str, bool]:
        return {"ready": True}

    @flow.node
    async def work(s: State) -> None:
        return None

    flow.chain(first, work)
    return Case(flow, FAILED, node="work")


def probe(bad: Bad) -> Case:
    flow = Flow("bad")

    @flow.node(effect="external", in_doubt="probe", probe=bad)
    async def work() -> None:
        raise OSError("no answer")

    return Case(flow, ASKS)


def judge(bad: Bad) -> Case:
    policy = Policy("p", Rule(name="r", judge="j"), judges={"j": lambda _facts: bad()})
    return Case(_approval(), ASKS, {"policies": policy})


def rule(bad: Bad) -> Case:
    policy = Policy("p", Rule(name="r", when=lambda _facts: bad(), decide="approve"))
    return Case(_approval(), ASKS, {"policies": policy})


def check_of_decisions(bad: Bad) -> Case:
    """A check of automatic approvals that does not pass rejects."""
    policy = Policy("p", Rule(name="r", decide="approve"))
    rails = Guardrails({"own": lambda _facts: bad()})
    return Case(_approval(), RunStatus.completed, {"policies": policy, "guardrails": rails})


def _approval() -> Flow:
    flow = Flow("bad", effect="pure")
    flow.hold("approve", prompt="Pay?", options=["approve", "reject"])
    return flow


def agent_tool(bad: Bad) -> Case:
    return Case(_agent(tool(name="bad", effect="read")(bad)), RunStatus.completed)


def agent_tool_with_effect(bad: Bad) -> Case:
    return Case(_agent(tool(name="bad")(bad)), ASKS)


def agent_script_tool(bad: Bad) -> Case:
    @tool(name="bad", script=True)
    async def script(ctx: Context) -> Any:
        found = bad()
        return await found if isawaitable(found) else found

    return Case(_agent(script), FAILED, node="work")


def tool_preparation(bad: Bad) -> Case:
    """The tool is not called, and the model is told why."""

    async def pay(prepared: Any) -> str:
        return "paid"

    return Case(_agent(tool(name="bad", prepare=bad)(pay)), RunStatus.completed)


def agent_preface(bad: Bad) -> Case:
    async def preface(_ctx: Context) -> str:
        found = bad()
        return await found if isawaitable(found) else found

    flow = Flow("bad")
    agent = Agent("helper", model=Scripted("Done."), preface=preface)

    @flow.script
    async def work(ctx: Context) -> None:
        await agent.run(ctx, "Do it.")

    return Case(flow, FAILED, node="work")


def wait_that_begins(bad: Bad) -> Case:
    async def begun() -> None:
        found = bad()
        if isawaitable(found):
            await found

    flow = Flow("bad", effect="pure")

    @flow.script
    async def work(ctx: Context) -> None:
        await ctx.wait_for("never", begun=begun)

    return Case(flow, FAILED, node="work")


def tool_approval(bad: Bad) -> Case:
    """A condition that cannot be evaluated asks a person."""

    async def pay() -> str:
        return "paid"

    return Case(_agent(tool(name="bad", approval=lambda _arguments: bad())(pay)), ASKS)


def answer_approval(bad: Bad) -> Case:
    flow = Flow("bad")
    flow.agent("work", model=Scripted("Done."), prompt="Do it.", approval=lambda _answer: bad())
    return Case(flow, ASKS)


def model_key(bad: Bad) -> Case:
    flow = Flow("bad")
    model = OpenAI("m", base_url="http://127.0.0.1:9", key=bad)
    flow.agent("work", model=model, prompt="Do it.")
    return Case(flow, FAILED, node="work")


def directory(bad: Bad) -> Case:
    """An assignee who cannot be looked up: the question is asked all the same."""
    flow = Flow("bad", effect="pure")
    flow.hold("approve", prompt="Pay?", options=["approve", "reject"], assignee="user:ann")
    return Case(flow, ASKS, {"directory": Lookups(person=lambda _tenant, _ref: bad())})


def embedding(bad: Bad) -> Case:
    flow = Flow("bad", effect="pure")

    @flow.node
    async def first(ctx: Context) -> None:
        await ctx.memory.write("the pipe is blue")

    @flow.node
    async def work(ctx: Context) -> None:
        await ctx.memory.read(semantic="a pipe")

    flow.chain(first, work)
    return Case(flow, FAILED, {"embed": lambda _texts: bad()}, node="work")


def agent_prompt(bad: Bad) -> Case:
    flow = Flow("bad")
    flow.agent("work", model=Scripted("Done."), prompt=lambda _state: bad())
    return Case(flow, FAILED, node="work")


def agent_turns(bad: Bad) -> Case:
    flow = Flow("bad")
    flow.agent("work", model=Scripted("Done."), prompt="Do it.", turns=lambda _state: bad())
    return Case(flow, FAILED, node="work")


def agent_model(bad: Bad) -> Case:
    flow = Flow("bad")
    flow.agent("work", model=Scripted(lambda _request: bad()), prompt="Do it.")
    return Case(flow, FAILED, node="work")


def _agent(made: Tool) -> Flow:
    flow = Flow("bad")
    flow.agent("work", model=Scripted(tool_call("bad"), "Done."), tools=[made], prompt="Do it.")
    return flow


# Those that may be plain functions or coroutines.
BOTH: tuple[Callable[[Bad], Case], ...] = (
    node,
    node_with_effect,
    node_with_timeout,
    node_beside_another,
    step,
    step_with_effect,
    step_of_sync_script,
    branch_of_script,
    map_body,
    condition,
    loop_condition,
    router,
    branch,
    router_after_effect,
    guardrail,
    guard,
    probe,
    judge,
    check_of_decisions,
    agent_tool,
    agent_tool_with_effect,
    agent_script_tool,
    tool_preparation,
    agent_preface,
    wait_that_begins,
    model_key,
    directory,
    embedding,
)
# Those that are plain functions.
PLAIN: tuple[Callable[[Bad], Case], ...] = (
    custom_reducer,
    reducer_of_results,
    state_type,
    rule,
    tool_approval,
    answer_approval,
    agent_prompt,
    agent_turns,
    agent_model,
)

_NOT_CALLED = "only its code is read"
_OURS = "given by Holdfast itself"

# Every function that the public API takes: its kinds, or why it needs none.
DECLARED: Mapping[str, tuple[Callable[[Bad], Case], ...] | str] = {
    "Agent.__init__(approval)": (answer_approval,),
    "Agent.__init__(preface)": (agent_preface,),
    "Agent.__init__(toolkit)": (agent_tool, agent_tool_with_effect, agent_script_tool),
    "Agent.__init__(tools)": (agent_tool, agent_tool_with_effect, agent_script_tool),
    "Agent.as_tool(approval)": (tool_approval,),
    "AgentNodes.agent(approval)": (answer_approval,),
    "AgentNodes.agent(prompt)": (agent_prompt,),
    "AgentNodes.agent(turns)": (agent_turns,),
    "Anthropic.__init__(key)": (model_key,),
    "Anthropic.__init__(sleep)": "for tests of the model's retries",
    "Anthropic.reply(emit)": _OURS,
    "Approval.when": (tool_approval,),
    "Collector.__init__(reducers)": (custom_reducer, reducer_of_results),
    "Collector.takes_of(fn)": _NOT_CALLED,
    "Context.map(fn)": (branch_of_script,),
    "Context.step(fn)": (step, step_with_effect, step_of_sync_script),
    "Context.wait_for(begun)": (wait_that_begins,),
    "Edges.branch(fn)": (branch,),
    "Edges.edge(when)": (condition,),
    "Edges.loop(when)": (loop_condition,),
    "Edges.router(fn)": (router, router_after_effect),
    "EffectDeclarations.effect(probe)": (probe,),
    "FlowBuilder.map(body)": (map_body,),
    "Gemini.__init__(key)": (model_key,),
    "Gemini.reply(emit)": _OURS,
    "Guard.__init__(checks)": (guard,),
    "Guard.__init__(input)": (guard,),
    "Guard.__init__(output)": (guard,),
    "Guardrails.__init__(checks)": (check_of_decisions,),
    "Holdfast.lifespan(inner)": "the lifespan of the application that contains it; its errors end that",
    "Holdfast.on_service(callback)": "called in the program that opens the store, not for a run",
    "InProcessMemory.__init__(embed)": (embedding,),
    "Lookups.__init__(group)": (directory,),
    "Lookups.__init__(memberships)": (directory,),
    "Lookups.__init__(person)": (directory,),
    "Lookups.__init__(role)": (directory,),
    "Lookups.__init__(stands_in_for)": (directory,),
    "Migrations.migrate(state)": "called by a command: tests/flows/test_versions.py",
    "Model.reply(emit)": _OURS,
    "Nodes.guardrail(id)": (guardrail,),
    "Nodes.node(compatible_with)": _NOT_CALLED,
    "Nodes.node(fn)": (node, node_with_effect, node_with_timeout, node_beside_another, state_type),
    "Nodes.node(probe)": (probe,),
    "Nodes.script(compatible_with)": _NOT_CALLED,
    "Nodes.script(fn)": (step,),
    "Nodes.task(fn)": (node,),
    "OpenAI.__init__(key)": (model_key,),
    "OpenAI.__init__(sleep)": "for tests of the model's retries",
    "OpenAI.reply(emit)": _OURS,
    "OpenAIResponses.__init__(key)": (model_key,),
    "OpenAIResponses.reply(emit)": _OURS,
    "Policy.__init__(judges)": (judge,),
    "Rule.when": (rule,),
    "Scripted.__init__(turns)": (agent_model,),
    "Scripted.reply(emit)": _OURS,
    "Tool.__init__(fn)": (agent_tool,),
    "Tool.__init__(prepare)": (tool_preparation,),
    "Tool.__init__(read)": _OURS,
    "Tool.with_approval(approval)": (tool_approval,),
    "read_policy(judges)": (judge,),
    "reducer(fn)": (custom_reducer,),
    "shell_tool(approval)": (tool_approval,),
    "coding_tools(approval)": (tool_approval,),
    "tool(approval)": (tool_approval,),
    "tool(fn)": (agent_tool, agent_tool_with_effect, agent_script_tool),
    "tool(prepare)": (tool_preparation,),
}
