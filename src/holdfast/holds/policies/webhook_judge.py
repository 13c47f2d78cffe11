"""A judge behind a webhook: called by a signed POST, under the egress rules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from holdfast.holds.egress import Egress
from holdfast.holds.notify.http_post import post
from holdfast.holds.notify.webhook import secret_of, signed
from holdfast.holds.policies.judge import Judgement, read_judgement
from holdfast.model.secrets import outgoing
from holdfast.types.clock import MICROS, Clock, SystemClock
from holdfast.types.ids import new_id
from holdfast.types.redaction import redactor


class WebhookJudge:
    """Posts the facts as JSON; the answer is `{"approved": true, "confidence": 0.9, "reasoning": ""}`
    or `decision` in place of `approved`. The default confidence is 1.

    `on_refusal`: what a status other than 2xx means: `people` (default: people decide), or `reject`.
    """

    def __init__(
        self,
        url: str,
        *,
        secrets: Sequence[str],
        egress: Egress | None = None,
        on_refusal: str = "people",
        clock: Clock | None = None,
    ) -> None:
        redactor.learn_for(None, url)
        self._url = url
        self._secrets = [secret_of(text, f"secrets[{place}]") for place, text in enumerate(secrets)]
        self._egress = egress or Egress()
        self._rejects = on_refusal == "reject"
        self._clock = clock or SystemClock()

    async def judge(self, facts: Mapping[str, Any]) -> Judgement:
        """Raises EgressError, OSError, TimeoutError and ValueError: then a person decides."""
        body = msgspec.json.encode({"type": "hold.judge", "data": outgoing(facts)})
        headers = signed(f"msg_{new_id()}", self._clock.now() // MICROS, body, self._secrets)
        headers["Content-Type"] = "application/json"
        reply = await post(self._url, body, headers, egress=self._egress)
        if not 200 <= reply.status < 300:
            if self._rejects:
                return Judgement("reject", 1.0, f"the webhook answered {reply.status}", "webhook")
            raise ValueError(f"the webhook answered {reply.status}")
        answer = msgspec.json.decode(reply.body, type=dict[str, Any])
        return msgspec.structs.replace(read_judgement({"confidence": 1.0, **answer}), decided_by="webhook")
