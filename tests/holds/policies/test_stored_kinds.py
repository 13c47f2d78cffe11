"""A stored policy with a name of an unknown kind, which older releases accepted."""

from __future__ import annotations

import msgspec
import pytest

from holdfast.errors import PolicyInvalidError
from holdfast.holds.policies.load import stored_policies
from holdfast.holds.policies.stored import KIND, put_policy
from holdfast.types.document import Document
from tests.holds.policies.conftest import MakeHoldfast

pytestmark = pytest.mark.anyio

RULES = {
    "name": "p",
    "rules": [
        {"name": "odd", "assign": "grp:finance"},
        {"name": "misspelt", "when": "prioritty == 'high'", "assign": "role:cfo"},
        {"name": "two", "approval": {"mode": "quorum", "need": 2}},
    ],
}


@pytest.mark.covers("HOLD-POL-01")
async def test_policy_of_an_older_release_stays_in_force_and_is_refused_when_it_is_written_again(
    make_hf: MakeHoldfast,
) -> None:
    store = await (await make_hf()).open()
    body = msgspec.json.encode(RULES)
    await store.put_document(Document(tenant="default", kind=KIND, name="p", body=body))
    (policy,) = await stored_policies(store, "default")
    assert [rule.name for rule in policy.rules] == ["odd", "misspelt", "two"]
    with pytest.raises(PolicyInvalidError, match="'grp' is no kind of assignee"):
        await put_policy(store, "default", RULES, by="user:ann")
