"""Rules that somebody took out of force through a server: removed, changed, deselected or overtaken.

A rule that needs several people would be worth little if one of them could remove it and then decide alone.
So the people who took it out of force cannot decide holds that it would have bound (ADR 81), until another
person, or an operator with the store, confirms the removal."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from holdfast.holds.directory.changes import DirectoryChanges, person_subject
from holdfast.holds.permissions.assignees import person_key
from holdfast.holds.policies.parse import policy_of
from holdfast.holds.policies.policy import Policy, RuleMatch
from holdfast.store.protocols import Store
from holdfast.types.document import Document
from holdfast.types.hold import NewHold

KIND: Final = "policy_removed"


class RemovedRules(msgspec.Struct, frozen=True, kw_only=True):
    """An earlier version of a policy, and the people who replaced or removed it."""

    policy: dict[str, Any]
    people: tuple[str, ...]
    at: int


async def every_document(store: Store, tenant: str, kind: str) -> AsyncIterator[Document]:
    """However many there are: names that come first must not push others out of sight."""
    after = ""
    while page := await store.documents(tenant, kind, after=after):
        for each in page:
            yield each
        after = page[-1].name


async def removed_rules(store: Store, tenant: str, name: str) -> list[RemovedRules]:
    kept = await store.document(tenant, KIND, name)
    return [] if kept is None else msgspec.json.decode(kept.body, type=list[RemovedRules])


async def note_removed(
    store: Store,
    tenant: str,
    name: str,
    old: Mapping[str, Any],
    new: Mapping[str, Any],
    people: Sequence[str],
) -> None:
    """`new`: without rules for a removal. An operator (no people) is free to, and confirms earlier ones."""
    if not people:
        await store.drop_document(tenant, KIND, name)
        return
    kept = _unconfirmed(await removed_rules(store, tenant, name), people if old == new else ())
    if not _keeps_its_bounds(old, new):
        kept.append(RemovedRules(policy=dict(old), people=tuple(people), at=store.now()))
    await _put(store, tenant, name, kept)


async def confirm_removal(store: Store, tenant: str, name: str, people: Sequence[str]) -> bool:
    """Whether these people were able to confirm a removal by others, so that it holds for everybody."""
    found = await removed_rules(store, tenant, name)
    left = _unconfirmed(found, people) if people else []
    if len(left) == len(found):
        return False
    await _put(store, tenant, name, left)
    return True


def _unconfirmed(removed: list[RemovedRules], by: Sequence[str]) -> list[RemovedRules]:
    """Only somebody else confirms it."""
    keys = set(map(person_key, by))
    return [each for each in removed if not keys or keys & set(map(person_key, each.people))]


async def _put(store: Store, tenant: str, name: str, kept: list[RemovedRules]) -> None:
    if kept:
        body = msgspec.json.encode(kept)
        await store.put_document(Document(tenant=tenant, kind=KIND, name=name, body=body))
    else:
        await store.drop_document(tenant, KIND, name)


def _keeps_its_bounds(old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    """Whether every rule up to the last one that binds is as it was: rules are tried in order."""
    rules = policy_of(dict(old), written=False).rules
    last = max((number for number, rule in enumerate(rules, 1) if rule.binds), default=0)
    return list(old["rules"][:last]) == list(new.get("rules", ())[:last])


# ---------------------------------------------------------------------- when a hold opens


async def removed_policies(store: Store, tenant: str) -> list[Policy]:
    """Earlier versions of policies; `made_by` are those who took them out of force."""
    found: list[Policy] = []
    async for kept in every_document(store, tenant, KIND):
        for each in msgspec.json.decode(kept.body, type=list[RemovedRules]):
            policy = policy_of(each.policy, kept.name, judges=None, written=False)
            policy.made_by = each.people
            found.append(policy)
    return found


def evaders(
    facts: Mapping[str, Any],
    chosen: RuleMatch | None,
    *,
    in_force: Iterable[Policy],
    deselected: Iterable[Policy],
    deselected_by: Sequence[str],
    removed: Iterable[Policy],
) -> tuple[str, ...]:
    """Who keeps a rule that needs several people from binding this hold: by another rule that comes first, by
    a deployment, or by a removal. Policies of the program and of files cannot be kept away."""
    found: list[str] = []
    if chosen is not None and any(each is not chosen.policy and _binds(each, facts) for each in in_force):
        found += chosen.policy.made_by
    if any(_binds(each, facts) for each in deselected):
        found += deselected_by
    for policy in removed:
        if _binds(policy, facts):
            found += policy.made_by
    return tuple(dict.fromkeys(found))


def _binds(policy: Policy, facts: Mapping[str, Any]) -> bool:
    rule = policy.rule_for(facts)
    return rule is not None and rule.binds


async def with_former_names(store: Store, tenant: str, people: Sequence[str]) -> tuple[str, ...]:
    """With the names and addresses that a caller of a server took from them: who removes their own entry from
    the directory does not become two people."""
    changes, found = DirectoryChanges(store), dict.fromkeys(people)
    todo = list(people)
    while todo:
        known = await changes.of(tenant, person_subject(person_key(todo.pop())))
        more = {
            f"user:{person_key(name)}" for change in known.values() for name in change.names
        } - found.keys()
        found |= dict.fromkeys(sorted(more))
        todo += more
    return tuple(found)


def without(hold: NewHold, people: Sequence[str]) -> NewHold:
    """The hold, which these people cannot decide, nor a rule without a person."""
    if not people:
        return hold
    excluded = tuple(dict.fromkeys((*hold.terms.excluded, *people)))
    terms = msgspec.structs.replace(hold.terms, excluded=excluded, auto=None)
    return msgspec.structs.replace(hold, terms=terms)
