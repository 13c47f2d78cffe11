"""Selects the best result of parallel branches: by rank, or by a model."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from typing import Any, cast

import msgspec

from holdfast.attractor import run_files
from holdfast.attractor.backends.base import (
    AnyBackend,
    PromptRequest,
    as_conversing,
    as_durable,
    is_conversing,
    is_durable,
    reserves,
)
from holdfast.attractor.backends.call import as_fields, call_once
from holdfast.attractor.backends.select import Backends, require_approvals_kept
from holdfast.attractor.branch_merge import merge_branches
from holdfast.attractor.failures import CLASS_KEY, StageFailedError, failure_of, raise_if_ours
from holdfast.attractor.handler import StageVisit
from holdfast.attractor.handlers.codergen import (
    answer_fields,
    call_backend,
    prompt_of,
    reply_fields,
    sources_of,
)
from holdfast.attractor.outcome import StageOutcome, StageStatus
from holdfast.attractor.pipeline_limits import spends_alone
from holdfast.attractor.references import PREFIX
from holdfast.attractor.verdict import judge

RESULTS = "parallel.results"
BEST_ID = "parallel.fan_in.best_id"
BEST_OUTCOME = "parallel.fan_in.best_outcome"
_REASON = 200  # characters
_RANK = {"success": 0, "partial_success": 1, "retry": 2, "fail": 3}


class FanInHandler:
    def __init__(self, backends: Backends) -> None:
        self._backends = backends

    async def perform(self, visit: StageVisit) -> StageOutcome:
        results = candidates(visit.context.get(RESULTS))
        if not results:
            return _failed("No parallel results to evaluate")
        living = [each for each in results if each["outcome"] != StageStatus.FAIL]
        if not living:
            return _failed(f"all parallel candidates failed{_reasons(results)}")
        best, how = ranked(living)[0], ""
        if visit.stage.prompt:
            try:
                ranking = await self._ask(visit, living)
            except Exception as error:
                raise_if_ours(error)
                return failure_of(error)
            chosen = candidate_named_in(ranking, living)
            best = chosen or best
            how = "" if chosen else " (the answer did not name one candidate: chosen by rank)"
        chosen = StageOutcome(
            context_updates={BEST_ID: best["id"], BEST_OUTCOME: best["outcome"]},
            notes=f"Selected best candidate: {best['id']}{how}",
        )
        return await merge_branches(visit, living, best, chosen)

    async def _ask(self, visit: StageVisit, living: Sequence[Mapping[str, Any]]) -> str:
        folder = visit.folder
        prompt = ranking_prompt(prompt_of(visit), living)
        run_files.write(folder / "prompt.md", prompt)
        reply = await ask_backend(self._backends.of(visit), visit, prompt, "rank")

        def kept() -> dict[str, str]:
            """Recorded like a model's answer, so that a restored directory has it too."""
            return {"prompt": prompt, "text": reply}

        await visit.ctx.step("answer", kept, effect="read")
        run_files.write(folder / "response.md", reply)
        visit.outputs.response = reply
        return reply


async def ask_backend(backend: AnyBackend, visit: StageVisit, prompt: str, name: str) -> str:
    """An answer as text, recorded under this name if the backend does not record it. Raises StageFailedError
    if its verdict is a failure, as for every other stage."""
    require_approvals_kept(backend, visit.stage, visit.pipeline)

    async def answer() -> dict[str, Any]:
        return answer_fields(await call_backend(backend, visit, prompt))

    async with nullcontext() if reserves(backend) else spends_alone(visit):
        if is_conversing(backend):
            asking = PromptRequest(visit=visit, prompt=prompt, equipped=False)
            reply = await as_conversing(backend).converse(asking)
            fields = answer_fields(reply) if isinstance(reply, StageOutcome) else reply_fields(reply)
        elif is_durable(backend):
            fields = answer_fields(await as_durable(backend).answer(visit, prompt))
        else:
            found = await call_once(backend, visit, name, answer)
            # Older records, and a person who says what came of it, have the text alone.
            fields = as_fields(found) or {"text": "" if found is None else str(found)}
    return _text_of(fields)


def candidates(found: Any) -> list[dict[str, Any]]:
    """The results of the branches, with their score: from the result, its updates, or 0 (AT-A25)."""
    items = cast("list[Any]", found) if isinstance(found, list) else []
    return [_candidate(cast("Mapping[str, Any]", item)) for item in items if isinstance(item, Mapping)]


def _candidate(item: Mapping[str, Any]) -> dict[str, Any]:
    updates = item.get("context_updates")
    inner: Mapping[str, Any] = cast("Mapping[str, Any]", updates) if isinstance(updates, Mapping) else {}
    score = item.get("score") or inner.get("score", 0)
    outcome = item.get("outcome") or item.get("status") or StageStatus.SUCCESS
    return {**item, "id": str(item.get("id", "")), "outcome": str(outcome), "score": _number(score)}


def _number(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        return 0.0


def ranked(found: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """An outcome that only the pipeline defines counts as a success (AT-A16)."""
    return sorted(found, key=lambda each: (_RANK.get(each["outcome"], 0), -each["score"], each["id"]))


def ranking_prompt(asked: str, living: Sequence[Mapping[str, Any]]) -> str:
    listed = msgspec.json.format(msgspec.json.encode([_brief(each) for each in living]), indent=2).decode()
    ids = ", ".join(each["id"] for each in living)
    return f"{asked}\n\nThe candidates:\n{listed}\n\nAnswer with the id of the best one: {ids}."


def _brief(candidate: Mapping[str, Any]) -> dict[str, Any]:
    """Without the whole output of its stages."""
    updates: Mapping[str, Any] = candidate.get("context_updates") or {}
    kept = {key: value for key, value in updates.items() if not key.startswith(PREFIX)}
    return {**candidate, "context_updates": kept} if "context_updates" in candidate else dict(candidate)


def candidate_named_in(text: str, living: Sequence[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """The candidate that the last line names, else the one that the answer names. None if that is none, or
    several: "a is better than b" must not choose b."""
    # Of branches that begin with one stage the best.
    by_id = {each["id"]: each for each in reversed(ranked(living)) if each["id"]}
    exact = by_id.get(text.strip().strip("`\"'*."))
    if exact is not None or not by_id:
        return exact
    longest_first = sorted(by_id, key=len, reverse=True)
    pattern = re.compile(r"(?<!\w)(?:" + "|".join(map(re.escape, longest_first)) + r")(?!\w)")
    for part in (text.strip().rpartition("\n")[2], text):
        found = set(pattern.findall(part))
        if len(found) == 1:
            return by_id[found.pop()]
    return None


def _text_of(fields: Mapping[str, Any]) -> str:
    """Raises StageFailedError."""
    verdict = judge(sources_of(fields, asked=False))
    if verdict is not None and verdict.status in (StageStatus.FAIL, StageStatus.RETRY):
        reason = verdict.failure_reason or verdict.notes or f"the verdict is {verdict.status}"
        raise StageFailedError(reason, str(verdict.context_updates.get(CLASS_KEY) or ""))
    if verdict is not None and ("outcome" in fields or "structured" in fields):
        return str(verdict.context_updates.get(BEST_ID) or verdict.preferred_label or verdict.notes)
    return str(fields.get("text", ""))


def _reasons(results: Sequence[Mapping[str, Any]]) -> str:
    """Of each branch, its first line."""
    given = [(each["id"], str(each.get("failure_reason") or "").strip()) for each in results]
    lines = [f"{branch}: {reason.splitlines()[0][:_REASON]}" for branch, reason in given if reason]
    return f" ({'; '.join(lines)})" if lines else ""


def _failed(reason: str) -> StageOutcome:
    return StageOutcome(status=StageStatus.FAIL, failure_reason=reason)
