"""Models of real endpoints answer stages: both protocols, all their trouble, and what it costs."""

from __future__ import annotations

import asyncio
import json
import socket
from pathlib import Path
from typing import Any

import pytest

from holdfast import Holdfast, tool
from holdfast.attractor import Runner
from holdfast.attractor.backends.model import ModelBackend
from holdfast.attractor.prepare import prepare_pipeline
from holdfast.attractor.providers import ModelSettings, Providers, ProviderSpec
from holdfast.errors import RequirementsMissingError, SettingsError
from holdfast.types.ids import new_run_id
from tests.agents.conftest import KEY, Naps, naps, provider
from tests.agents.provider import Answer, Hangs, Provider, Refusal, Silence
from tests.attractor.models import asked, backend
from tests.attractor.run import dot, line, run, until, written

__all__ = ["naps", "provider"]
pytestmark = pytest.mark.anyio


def a_stage(provider: str, more: str = "") -> str:
    return line(f'a [prompt="Do $goal", llm_provider={provider}{more}];', "a")


def everything_in(folder: Path) -> str:
    return "".join(written(file) for file in folder.rglob("*") if file.is_file())


@pytest.mark.covers(
    "ATTRACTOR-HANDLER-04", "ATTRACTOR-HANDLER-05", "AT-125", "AT-143", "AT-178", "AT-179", "CP2-L1"
)
@pytest.mark.parametrize(
    ("kind", "path"),
    [
        ("near", "/v1/chat/completions"),
        ("far", "/v1/messages"),
        ("new", "/v1/responses"),
        ("star", "/v1beta/models/m-1:streamGenerateContent?alt=sse"),
    ],
)
async def test_a_stage_is_answered_by_a_model(
    hf: Holdfast, tmp_path: Path, provider: Provider, kind: str, path: str
) -> None:
    provider.says(Answer("x" * 250))
    result = await run(hf, a_stage(kind), tmp_path, backend=backend(provider))
    assert result.succeeded
    assert provider.seen[0].path == path
    assert provider.seen[0].json.get("model", "m-1") == "m-1"
    assert KEY in str(provider.seen[0].headers)
    assert asked(provider.seen[0]).endswith("\n\nDo ship it")
    assert written(tmp_path / "a" / "prompt.md") == "Do ship it"
    assert written(tmp_path / "a" / "response.md") == "x" * 250
    assert result.context["last_stage"] == "a"
    assert result.context["last_response"] == "x" * 200
    assert KEY not in everything_in(tmp_path)


@pytest.mark.covers("ATTRACTOR-HANDLER-06")
async def test_tokens_stream_and_usage_and_cost_are_counted(
    hf: Holdfast, tmp_path: Path, provider: Provider
) -> None:
    provider.says(Answer("one two three", tokens=(1000, 100)), Answer("four", tokens=(2000, 200)))
    result = await run(hf, line("a; b;", "a", "b"), tmp_path, backend=backend(provider))
    service = await hf.service()
    events = await service.events(result.run_id)
    lines = [(event.node, event.data["data"]) for event in events if event.type == "node.emitted"]
    assert lines == [("a", "one t"), ("a", "wo th"), ("a", "ree"), ("b", "four")]
    diagnostics = (await service.latest(result.run_id)).diagnostics
    assert diagnostics["totalTokensUsed"] == 3300
    assert diagnostics["totalCost"] == pytest.approx(3000 * 2e-6 + 300 * 1e-5)


@pytest.mark.covers("ATTRACTOR-PROOF-16", "AT-105")
@pytest.mark.parametrize(
    "trouble",
    [
        Refusal(429, {"retry-after": "7"}),
        Refusal(503),
        Refusal(500),
        Silence(),
        Hangs(),
        Answer("half an answer", cut=3),
        Answer("half an answer", cut=3, stall=6),
    ],
    ids=["429", "503", "500", "silence", "slow", "cut", "slow body"],
)
@pytest.mark.parametrize("kind", ["near", "far"])
async def test_what_passes_is_tried_again(
    hf: Holdfast, tmp_path: Path, provider: Provider, naps: Naps, trouble: Any, kind: str
) -> None:
    provider.says(trouble, Answer("whole"))
    result = await run(hf, a_stage(kind), tmp_path, backend=backend(provider, naps))
    assert result.succeeded
    assert result.context["last_response"] == "whole"
    assert len(naps.taken) == 1
    if isinstance(trouble, Refusal) and trouble.status == 429:
        assert naps.taken == [7.0]


@pytest.mark.covers("AT-105")
@pytest.mark.parametrize(("status", "tries"), [(429, 3), (500, 3), (400, 1), (401, 1), (403, 1)])
async def test_a_stage_retries_what_may_pass_and_nothing_else(
    hf: Holdfast, tmp_path: Path, provider: Provider, status: int, tries: int
) -> None:
    provider.says(*[Refusal(status)] * 3, Answer("late"))
    text = a_stage("near", ", max_retries=2")
    result = await run(hf, text, tmp_path, backend=backend(provider, attempts=1))
    assert len(provider.seen) == tries
    assert result.status == "fail"
    assert f"HTTP {status}: too much" in result.outcome.failure_reason
    assert result.context["failure_class"] == ("transient" if tries > 1 else "terminal")


@pytest.mark.covers("ATTRACTOR-BAD-06")
async def test_a_dead_endpoint_is_one_clear_failure(hf: Holdfast, tmp_path: Path, naps: Naps) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        dead = Provider(f"http://127.0.0.1:{taken.getsockname()[1]}")
        result = await run(hf, line("a;", "a"), tmp_path, backend=backend(dead, naps))
    assert result.status == "fail"
    assert dead.url in result.outcome.failure_reason
    assert "did not answer in 3 attempts" in result.outcome.failure_reason
    assert "Traceback" not in result.outcome.failure_reason
    assert result.context["failure_class"] == "transient"


@pytest.mark.covers("ATTRACTOR-BAD-05", "AT-211")
@pytest.mark.parametrize(
    ("attrs", "value", "hint"),
    [
        ("llm_provider=nobody, llm_model=m", "uses the provider 'nobody', which is unknown", "far"),
        ("llm_model=strange", "the provider of the model 'strange' is unknown", "llm_provider"),
        ("", "names no model", "llm_model"),
        (
            "llm_model=claude-x",
            "uses the provider 'anthropic', whose key is not set",
            "ANTHROPIC_API_KEY",
        ),
    ],
)
async def test_what_is_missing_for_a_stage_is_said_of_that_stage(
    hf: Holdfast, tmp_path: Path, attrs: str, value: str, hint: str
) -> None:
    far = {
        "far": ProviderSpec(base_url="http://localhost:1"),
        "near": ProviderSpec(base_url="http://localhost:1"),
    }
    asks = ModelBackend(Providers(ModelSettings(providers=far), environment={}))
    text = line(f"a [prompt=hi{', ' + attrs if attrs else ''}];", "a")
    if "uses the provider" in value:
        # Another worker may have it: this is no outcome of the stage.
        with pytest.raises(RequirementsMissingError, match=f"stage 'a' {value}"):
            await run(hf, text, tmp_path, backend=asks)
    else:
        result = await run(hf, text, tmp_path, backend=asks)
        assert result.status == "fail"
        assert f"stage 'a' {value}" in result.outcome.failure_reason.replace("'a': ", "'a' ")
        assert result.context["failure_class"] == "terminal"
    pipeline = prepare_pipeline(text, Runner(hf).pipeline_setup).pipeline
    problem = asks.problems(pipeline, pipeline.stages.values())["a"]
    assert isinstance(problem, SettingsError)
    assert hint in str(problem.hint)


@pytest.mark.covers("AT-211")
async def test_providers_follow_from_names_and_addresses_from_the_environment(hf: Holdfast) -> None:
    known = Providers(
        ModelSettings(),
        environment={"ANTHROPIC_API_KEY": "k", "OPENAI_API_KEY": "k", "OPENAI_BASE_URL": "http://gateway/v1"},
    )
    text = dot(
        "a [llm_model=claude-x]; b [llm_model=gpt-5-x]; c [llm_model=old]; d [llm_model=gpt-4x];",
        "start -> a -> b -> c -> d -> done",
        'goal=g, llm_provider="", model_stylesheet="#c { llm_model: gpt-4; reasoning_effort: low }"',
    )
    pipeline = prepare_pipeline(text, Runner(hf).pipeline_setup).pipeline
    models: dict[str, Any] = {
        name: known.model_for(pipeline.stages[name], pipeline) for name in ("a", "b", "d")
    }
    assert repr(models["a"]) == "Anthropic('claude-x', base_url='https://api.anthropic.com')"
    assert repr(models["b"]) == "OpenAIResponses('gpt-5-x', base_url='http://gateway/v1')"
    assert models["a"].options == {}
    assert models["b"].options == {"reasoning": {"effort": "high"}}
    assert models["d"].options == {}


@pytest.mark.covers("AT-211")
@pytest.mark.parametrize(
    ("kind", "sent"),
    [
        ("near", {"reasoning_effort": "low"}),
        ("far", {"output_config": {"effort": "low"}}),
        ("new", {"reasoning": {"effort": "low"}}),
        ("star", {"generationConfig": {"thinkingConfig": {"thinkingLevel": "LOW"}}}),
    ],
)
async def test_reasoning_effort_is_said_in_the_providers_words(
    hf: Holdfast, tmp_path: Path, provider: Provider, kind: str, sent: dict[str, Any]
) -> None:
    provider.says(Answer("a"), Answer("b"))
    text = dot(
        f"a [llm_provider={kind}, llm_model=other]; b [llm_provider={kind}];",
        "start -> a -> b -> done",
        'goal=g, model_stylesheet="#a { reasoning_effort: low; llm_model: other }"',
    )
    await run(hf, text, tmp_path, backend=backend(provider))
    first, second = provider.seen
    assert {key: first.json.get(key) for key in sent} == sent
    assert first.json.get("model", "other") == "other"
    assert not set(sent) & set(second.json)


FORM = {
    "type": "object",
    "properties": {"outcome": {"type": "string"}, "age": {"type": "integer"}},
    "required": ["outcome", "age"],
    "additionalProperties": False,
}


@pytest.mark.covers("CP2-L7")
@pytest.mark.parametrize(
    ("kind", "field"),
    [
        ("new", lambda sent: sent["text"]["format"]["schema"]),
        ("far", lambda sent: sent["output_config"]["format"]["schema"]),
        ("star", lambda sent: sent["generationConfig"]["responseJsonSchema"]),
        ("near", lambda sent: sent["tools"][-1]["function"]["parameters"]),
    ],
)
async def test_a_stage_has_an_answer_of_its_form_after_one_repair_or_fails(
    hf: Holdfast, tmp_path: Path, provider: Provider, kind: str, field: Any
) -> None:
    def says(text: str) -> Answer:
        return Answer("", [("c1", "final_answer", text)]) if kind == "near" else Answer(text)

    (tmp_path / "form.json").write_text(json.dumps(FORM))
    file = tmp_path / "one.dot"
    file.write_text(line(f'a [prompt=hi, llm_provider={kind}, output_schema="@form.json"];', "a"))
    provider.says(says('{"age": "x"}'), says('{"outcome": "fail", "age": 3}'))
    result = await run(hf, file, tmp_path / "logs", backend=backend(provider))
    assert json.loads(written(tmp_path / "logs" / "a" / "response.md")) == {"outcome": "fail", "age": 3}
    assert result.status == "fail"
    assert [field(seen.json) for seen in provider.seen] == [FORM, FORM]
    provider.says(says('{"age": "x"}'), says('{"age": "y"}'), says('{"outcome": "success", "age": 3}'))
    result = await run(hf, file, tmp_path / "more", backend=backend(provider))
    assert result.status == "fail"
    assert "no usable answer in 2 turns" in result.outcome.failure_reason


@pytest.mark.covers("CP2-L4")
async def test_stages_of_one_thread_have_one_cache_key(
    hf: Holdfast, tmp_path: Path, provider: Provider
) -> None:
    provider.says(Answer("a"), Answer("b"), Answer("c"))
    text = dot(
        "a [thread_id=t]; b [thread_id=t]; c [thread_id=u];",
        "start -> a -> b -> c -> done",
        "goal=g, llm_provider=new, default_fidelity=full",
    )
    assert (await run(hf, text, tmp_path, backend=backend(provider))).succeeded
    first, second, third = (seen.json["prompt_cache_key"] for seen in provider.seen)
    assert first == second != third


@pytest.mark.covers("AT-A15")
async def test_a_model_says_where_to_go_at_the_end_of_its_answer(
    hf: Holdfast, tmp_path: Path, provider: Provider
) -> None:
    block = '```json\n{"outcome": "success", "preferred_label": "Fix", "context_updates": {"n": 3}}\n```'
    provider.says(Answer(f"Looked at it.\n{block}\n"), Answer("mended"))
    text = dot("a; fix;", "start -> a; a -> done [label=Ship]; a -> fix [label=Fix]; fix -> done")
    result = await run(hf, text, tmp_path, backend=backend(provider))
    assert result.completed_nodes == ("start", "a", "fix", "done")
    assert result.context["n"] == 3
    system = provider.seen[0].json["messages"][0]["content"]
    assert "preferred_label: empty, or the label of the edge to follow: Ship, Fix." in system
    assert "outcome" not in provider.seen[1].json["messages"][0]["content"]


@pytest.mark.covers("AT-A15")
@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        ("All good.", "fail"),
        ('Done.\n```json\n{"outcome": "success"}\n```', "success"),
        ('Done.\n```json\n{"outcome": "success", "context_updates": 3}\n```', "fail"),
    ],
)
async def test_prose_is_no_proof_where_a_gate_is_closed(
    hf: Holdfast, tmp_path: Path, provider: Provider, answer: str, outcome: str
) -> None:
    provider.says(Answer(answer))
    text = line("a [goal_gate=true, auto_status=false];", "a")
    result = await run(hf, text, tmp_path, backend=backend(provider))
    assert result.status == outcome


async def test_an_answer_that_was_cut_at_its_limit_is_informed_of(
    hf: Holdfast, tmp_path: Path, provider: Provider
) -> None:
    provider.says(Answer("as far as", finish="length"))
    result = await run(hf, a_stage("near"), tmp_path, backend=backend(provider))
    events = await (await hf.service()).events(result.run_id)
    logged = [e.data["data"] for e in events if e.type == "node.emitted" and e.data["kind"] == "log"]
    assert logged == ["the answer of a was cut at its limit (length)"]


@pytest.mark.covers("AT-196")
async def test_a_model_ranks_branches(hf: Holdfast, tmp_path: Path, provider: Provider) -> None:
    provider.says(Answer("one"), Answer("two"), Answer("The better one is `y`."))
    text = dot(
        'fan [shape=component]; x; y; best [shape=tripleoctagon, prompt="Which is better?"];',
        "start -> fan; fan -> x; fan -> y; x -> best; y -> best; best -> done",
    )
    result = await run(hf, text, tmp_path, backend=backend(provider))
    assert result.context["parallel.fan_in.best_id"] == "y"
    assert "Which is better?" in asked(provider.seen[2])


@pytest.mark.covers("ATTRACTOR-HANDLER-07", "ATTRACTOR-PROOF-16")
async def test_what_a_model_said_and_did_before_a_crash_is_not_done_again(
    hf: Holdfast, tmp_path: Path, provider: Provider
) -> None:
    done: list[str] = []

    @tool
    async def pay(to: str) -> str:
        """Pays somebody."""
        done.append(to)
        return "paid"

    asks = backend(provider, tools=[pay])
    runner, run_id = Runner(hf, backend=asks, logs_root=tmp_path), str(new_run_id())
    provider.says(Answer(calls=[("c1", "pay", {"to": "ann"})]), Hangs(0), Answer("all paid"))
    work = asyncio.ensure_future(runner.run(line("a;", "a"), run_id=run_id))
    await until(lambda: len(provider.seen) == 2)
    work.cancel()
    await asyncio.gather(work, return_exceptions=True)
    ended = await runner.resume(run_id)
    assert ended.context["last_response"] == "all paid"
    assert done == ["ann"]
    assert len(provider.seen) == 3
    assert provider.bodies[1] == provider.bodies[2]


async def test_providers_are_read_from_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "models.toml"
    file.write_text(
        'model = "m"\nprovider = "local"\ntools = ["files"]\n'
        '[providers.local]\nbase_url = "http://localhost:1/v1"\n'
        '[prices.m]\ninput = "1"\noutput = 2\n'
    )
    monkeypatch.setenv("HOLDFAST_MODELS", str(file))
    made = ModelBackend()
    assert made.kits == ("files",)
    pipeline = prepare_pipeline(line("a;", "a"), Runner().pipeline_setup).pipeline
    assert repr(made.providers.model_for(pipeline.stages["a"], pipeline)) == (
        "OpenAI('m', base_url='http://localhost:1/v1')"
    )
    for text, entry in (("model = [", "is not TOML"), ("modle = 1", "modle"), ("model = 1", "$.model")):
        file.write_text(text)
        with pytest.raises(SettingsError, match=entry.replace("$", r"\$")):
            ModelBackend()
