"""Posting to an address that was given to us: what each answer means for the message."""

from __future__ import annotations

import ssl
from collections.abc import Mapping, Sequence

from holdfast.errors import EgressError
from holdfast.holds.egress import Egress
from holdfast.holds.notify.channel import Delivery, Scope
from holdfast.holds.notify.escape import one_line
from holdfast.holds.notify.http_post import Reply, post
from holdfast.types.clock import Clock, SystemClock
from holdfast.types.redaction import veil
from holdfast.types.terms import Assignee

# The other side is busy, or broken for now.
LATER = frozenset({408, 409, 425, 429})


class Hook:
    """A channel that is one address, for everybody who reads there."""

    personal = False

    def __init__(
        self,
        name: str,
        url: str,
        *,
        egress: Egress | None = None,
        scope: Scope | None = None,
        admin: bool = False,
        clock: Clock | None = None,
    ) -> None:
        self.name = name
        self.scope = scope or Scope()
        veil.learn(url)
        self._url = url
        self._egress = egress or Egress()
        self._admin = admin
        self._clock = clock or SystemClock()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"  # the address is a secret

    async def addresses(self, to: Assignee, tenant: str) -> Sequence[str]:
        return (self.name,)

    async def admins(self) -> Sequence[str]:
        return (self.name,) if self._admin else ()

    async def _post(self, body: bytes, headers: Mapping[str, str] | None = None) -> Delivery:
        fields = {"Content-Type": "application/json", **(headers or {})}
        try:
            reply = await post(self._url, body, fields, egress=self._egress)
        except EgressError as error:
            return Delivery(accepted=False, detail=str(error))
        except ssl.SSLCertVerificationError as error:
            return Delivery(accepted=False, retry=True, detail=f"its certificate: {error.verify_message}")
        except TimeoutError:
            return Delivery(accepted=False, retry=True, detail="no answer in time")
        except (OSError, ValueError) as error:
            return Delivery(accepted=False, retry=True, detail=one_line(str(error) or type(error).__name__))
        return understood(reply, self._clock.now())


def understood(reply: Reply, now: int) -> Delivery:
    """2xx is acceptance and nothing more, whatever the answer says; a redirect is not followed."""
    if 200 <= reply.status < 300:
        return Delivery(accepted=True, detail=f"HTTP {reply.status}")
    said = one_line(reply.body.decode("utf-8", "replace"), 200)
    detail = f"HTTP {reply.status}: {said}" if said else f"HTTP {reply.status}"
    retry = reply.status >= 500 or reply.status in LATER
    return Delivery(accepted=False, retry=retry, after=reply.retry_after(now), detail=detail)
