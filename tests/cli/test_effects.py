"""Effects without a flow, as an operator sees them."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

from holdfast import EffectWaitingError
from tests.cli.conftest import Cli

SHOP = """
from holdfast import Holdfast

hf = Holdfast("sqlite:h.db")


@hf.effect(key="refund-{{order}}", hold="Refund {{order}}?", secrets=["card"])
def refund(order: str, card: str) -> str:
    return f"refunded {order}"


@hf.effect(key="{{order}}", ignore=["client"])
def charge(client, order: str) -> None: ...
"""


@pytest.mark.covers("USERS-EFFECT")
def test_an_effect_is_listed_shown_decided_and_resumed_on_the_command_line(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "shop_of_effects.py"
    file.write_text(SHOP)
    monkeypatch.syspath_prepend(tmp_path)
    shop = importlib.import_module("shop_of_effects")
    with pytest.raises(EffectWaitingError) as waiting:
        shop.refund("A17", "4111-1111")
    run, store = str(waiting.value.facts["run"]), ("--store", "sqlite:h.db")
    assert "effect.refund" in cli("runs", *store).out
    assert "Refund A17?" in cli("holds", "list", *store).out
    shown = cli("show", run, *store).out
    assert "refund-A17" in shown
    assert "4111" not in shown
    assert cli("answer", run, "approve", *store).code == 0
    # A worker has the code of effects, too, but not of those that need something of their caller.
    assert cli("resume", run, f"{file}", *store).code == 0
    assert shop.refund("A17", "4111-1111") == "refunded A17"
    assert "approved" in cli("audit", "list", *store).out
