"""How people and programs come in when `holdfast serve` starts: who is let in, what the operator hears."""

from __future__ import annotations

from ipaddress import ip_address
from typing import Any

from starlette.types import ASGIApp

from holdfast.api.app import ApiSettings, build
from holdfast.api.auth.single import OneToken
from holdfast.api.routes.all import THEMES
from holdfast.app.house import Holdfast
from holdfast.errors import SettingsError


class Door:
    """`app`: what answers. The rest is asked once the store is open."""

    def __init__(self, house: Holdfast, *, host: str, settings: ApiSettings) -> None:
        self.house = house
        self.host = host
        self._auth = OneToken()
        self.app: ASGIApp = build(house, self._auth, settings, THEMES)

    async def admit(self) -> None:
        """Raises SettingsError where it must not listen as it was told to."""
        if not is_loopback(self.host):
            raise SettingsError(
                f"A server without tokens listens on this machine only, and {self.host} is for others too.",
                hint="Leave --host out.",
            )

    async def told(self, _address: str) -> dict[str, Any]:
        """For programs that start a server, on its one line."""
        return {"token": self._auth.token}

    async def greeting(self, _address: str) -> list[str]:
        """For people."""
        return [f"Its token, until it ends: {self._auth.token}"]

    def close_streams(self) -> None:
        """Those who follow something are let go: they come back elsewhere."""


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
