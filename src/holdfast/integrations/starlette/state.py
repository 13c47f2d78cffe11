"""What the lifespan of an instance and the applications made by its `asgi` share."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary

from holdfast.api.health import ServerState
from holdfast.app.holdfast import Holdfast
from holdfast.errors import SettingsError

if TYPE_CHECKING:
    from holdfast.api.app import RequestAuthenticator


class MountState:
    """`managed`: a lifespan opens and closes the store; otherwise the first request opens it."""

    def __init__(self) -> None:
        self.standing = ServerState()
        self.managed = False
        # By what was given to `asgi`, so that two mounts with the same one have one.
        self._authenticators: dict[tuple[Any, bool], RequestAuthenticator] = {}

    def add_authenticator(self, given: Any, anonymous: bool, made: RequestAuthenticator) -> None:
        # Others by identity: an object of the application may be equal to another that asks for less. A
        # method is a new object each time that it is named.
        key = given if isinstance(given, str) or inspect.ismethod(given) else id(given)
        self._authenticators[key, anonymous] = made

    @property
    def authenticator(self) -> RequestAuthenticator:
        """Of the application's own routes. Raises SettingsError if there is none, or if several mounts
        differ: one of them may let everyone in, and a route does not say which of them it belongs to."""
        found = list(self._authenticators.values())
        if not found:
            raise SettingsError(
                "there is no authenticator that knows who calls.", hint="Mount hf.asgi(authenticator=...)."
            )
        if len(found) > 1:
            raise SettingsError(
                f"{len(found)} mounts of this instance have different authenticators: it is not known "
                "which of them is asked who calls.",
                hint="Call the function of your choice in this route, or give all of them the same one.",
            )
        return found[0]


_states: Final[WeakKeyDictionary[Holdfast, MountState]] = WeakKeyDictionary()


def state_of(hf: Holdfast) -> MountState:
    return _states.setdefault(hf, MountState())
