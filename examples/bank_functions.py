"""What examples/refund.yaml and examples/orders.yaml call."""

from __future__ import annotations

from typing import Any


def pay(order: str, amount: float, asked: float) -> dict[str, Any]:
    return {"receipt": f"R-{order}", "amount": amount or asked}


def price(item: dict[str, Any], rate: float) -> float:
    return round(float(item["price"]) * rate, 2)
