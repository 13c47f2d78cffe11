"""What the lifespan of an instance and the applications made by its `asgi` share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from weakref import WeakKeyDictionary

from holdfast.api.health import ServerState
from holdfast.app.holdfast import Holdfast

if TYPE_CHECKING:
    from holdfast.api.app import RequestAuthenticator


class MountState:
    """`managed`: a lifespan opens and closes the store; otherwise the first request opens it."""

    def __init__(self) -> None:
        self.standing = ServerState()
        self.authenticator: RequestAuthenticator | None = None
        self.managed = False


_states: Final[WeakKeyDictionary[Holdfast, MountState]] = WeakKeyDictionary()


def state_of(hf: Holdfast) -> MountState:
    return _states.setdefault(hf, MountState())
