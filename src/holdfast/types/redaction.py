"""Values of secrets that this process has seen, masked in every text that leaves it.

Values are added where records are written and read, and masked in every output: JSON, the command line's
screen, log lines, error messages. They are kept by tenant: what one tenant calls a secret neither changes
what another one reads, nor tells it anything (ADR 87). Secrets of the operator belong to no tenant. Short
values would mask half of every text, so they are masked only in their own field (`model.secrets`).
"""

from __future__ import annotations

import json
import re
from collections import OrderedDict
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from threading import Lock
from typing import Any, Final, cast

MASK: Final = "***"
MIN_SECRET_LENGTH: Final = 6
MIN_STRONG_LENGTH: Final = 20
MAX_SECRETS: Final = 8_000
"""Forms of values that are kept for all tenants together, for log lines."""
MAX_TENANT_SECRETS: Final = 4_000
MAX_TENANTS: Final = 1_000
NO_TENANT: Final = ""
"""The tenant of a caller without a credential: it has no secrets."""

# A string of JSON, and whether it is the key of an object.
_STRING: Final = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"(\s*:)?')
# None: the operator, who runs this process and reads its log.
_tenant: ContextVar[str | None] = ContextVar("the tenant whose secrets are masked", default=None)

# Values that only the task of one run has, such as the tokens of its callbacks.
_hidden: ContextVar[dict[str, None] | None] = ContextVar("what is masked in this task", default=None)


class Secret:
    """Marks a secret field: `Annotated[str, Secret]`. The annotated type does not change."""


def is_secret_mark(extra: Any) -> bool:
    return extra is Secret or isinstance(extra, Secret)


def current_tenant() -> str | None:
    return _tenant.get()


def enter_tenant(tenant: str) -> None:
    """From here on, until the end of this task or of the `tenant_scope` around it."""
    _tenant.set(tenant)


@contextmanager
def tenant_scope(tenant: str | None) -> Generator[None]:
    """What is learned inside belongs to this tenant, and what is masked inside is for its people. None: the
    operator."""
    token = _tenant.set(tenant)
    try:
        yield
    finally:
        _tenant.reset(token)


def begin_hiding() -> None:
    """From here on, in this task and in those that it starts, `hide` has an effect."""
    _hidden.set({})


def hide(value: str) -> None:
    """Mask it in every text that is recorded or logged from this task, and nowhere else: its reader may be
    shown it on request. It is not one of the tenant's secrets, which many of them would displace."""
    found = _hidden.get()
    if found is not None:
        found[value] = None


class _Forms:
    """The newest forms of values of one owner."""

    __slots__ = ("most", "values")

    def __init__(self, most: int) -> None:
        self.most = most
        self.values: dict[str, None] = {}

    def add(self, forms: Iterable[str]) -> bool:
        """Whether older ones were dropped."""
        self.values.update(dict.fromkeys(forms))
        oldest = list(self.values)[: max(0, len(self.values) - self.most)]
        for each in oldest:
            del self.values[each]
        return bool(oldest)


class Redactor:
    """Masks the secrets that were added to it: in the scope of a tenant those of the tenant and the strong
    ones of the operator, outside of any all that it knows."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._clear()

    def _clear(self) -> None:
        self._all = _Forms(MAX_SECRETS)
        self._operator = _Forms(MAX_SECRETS)
        self._tenants: OrderedDict[str, _Forms] = OrderedDict()
        # Forms by owner, the longest first: a secret may be a part of another.
        self._by_length: dict[str | None, tuple[str, ...]] = {}
        # How often forms were dropped, by tenant; and how often a tenant was.
        self._drops: dict[str, int] = {}
        self._evicted = 0

    # ------------------------------------------------------------------ learning
    def learn(self, value: Any) -> None:
        """Add every text and long number in a secret value, for the owner of this scope."""
        self.learn_for(_tenant.get(), value)

    def learn_for(self, tenant: str | None, value: Any) -> None:
        """The same for this tenant; None: for the operator."""
        texts = list(_texts(value))
        if not texts:
            return
        known = self._operator if tenant is None else self._tenants.get(tenant)
        seen: Mapping[str, None] = {} if known is None else known.values
        fresh = [form for text in texts for form in text_forms(text) if form not in seen]
        if fresh:
            with self._lock:
                self._add(tenant, fresh)

    def _add(self, tenant: str | None, fresh: list[str]) -> None:
        self._all.add(fresh)
        self._by_length.pop(None, None)
        if tenant == NO_TENANT:
            return
        if tenant is None:
            self._operator.add(fresh)
            self._by_length.clear()
            return
        known = self._tenants.setdefault(tenant, _Forms(MAX_TENANT_SECRETS))
        self._tenants.move_to_end(tenant)
        if known.add(fresh):
            self._drops[tenant] = self._drops.get(tenant, 0) + 1
        if len(self._tenants) > MAX_TENANTS:
            gone, _ = self._tenants.popitem(last=False)
            self._by_length.pop(gone, None)
            self._evicted += 1
        self._by_length.pop(tenant, None)

    def drops(self, tenant: str) -> tuple[int, int]:
        """Changes when secrets of the tenant may have been forgotten."""
        return self._evicted, self._drops.get(tenant, 0)

    def forget(self) -> None:
        with self._lock:
            self._clear()

    # ------------------------------------------------------------------ masking
    @property
    def is_empty(self) -> bool:
        """Nothing would be masked."""
        return not self._all.values

    def redact(self, text: str) -> str:
        """The text with every secret in it masked that is known in this scope."""
        if hidden := _hidden.get():
            text = _masked(text, hidden)
        return _masked(text, self._known(_tenant.get())) if self._all.values else text

    def redact_line(self, text: str) -> str:
        """For the operator's log, in any scope: every known secret."""
        if hidden := _hidden.get():
            text = _masked(text, hidden)
        if not self._all.values:
            return text
        tenant = _tenant.get()
        text = _masked(text, self._known(None))
        # Another tenant with many secrets may have displaced those of this one.
        return text if tenant is None else _masked(text, self._known(tenant))

    def redact_operator(self, text: str) -> str:
        """For the text of an error that came from a service of the operator: also those of the operator's
        secrets that a caller could guess."""
        return _masked(self.redact(text), sorted(self._operator.values, key=len, reverse=True))

    def redact_json(self, data: bytes) -> bytes:
        """The same for encoded JSON, in texts that are values. Keys and numbers stay: the answer keeps its
        form."""
        known = self._known(_tenant.get()) if self._all.values else ()
        if not known:
            return data
        text = data.decode("utf-8", "surrogateescape")
        if not any(value in text for value in known):
            return data
        return _STRING.sub(lambda found: _masked_string(found, known), text).encode(
            "utf-8", "surrogateescape"
        )

    def is_known_secret(self, number: int) -> bool:
        if not self._all.values:
            return False
        # No secret has thousands of digits, and Python refuses to write such numbers out.
        return number.bit_length() < 10_000 and str(number) in self._known(_tenant.get())

    def finds_strong(self, text: str) -> bool:
        """Whether the text contains a secret of this scope that it cannot contain by chance."""
        if not self._all.values:
            return False
        return any(value in text and is_strong(value) for value in self._known(_tenant.get()))

    def _known(self, tenant: str | None) -> tuple[str, ...]:
        found = self._by_length.get(tenant)
        if found is None:
            with self._lock:
                found = tuple(sorted(self._forms_for(tenant), key=len, reverse=True))
                self._by_length[tenant] = found
        return found

    def _forms_for(self, tenant: str | None) -> set[str]:
        if tenant is None:
            return {*self._all.values, *self._operator.values}
        own = self._tenants.get(tenant)
        # A weak secret of the operator is not masked for tenants: they could guess it and see it masked.
        strong = (each for each in self._operator.values if is_strong(each))
        return {*strong, *(() if own is None else own.values)}


def _masked(text: str, known: Iterable[str]) -> str:
    for value in known:
        if value in text:
            text = text.replace(value, MASK)
    return text


def _masked_string(found: re.Match[str], known: tuple[str, ...]) -> str:
    whole = found[0]
    if found[1] is not None:
        return whole
    text = json.loads(whole, strict=False)
    hidden = _masked(text, known)
    return whole if hidden == text else json.dumps(hidden)


def is_strong(text: str) -> bool:
    """Whether it cannot be guessed: it has a long part with letters and digits. The host of an address is no
    such part."""
    parts = re.split(r"[/?&#:@.]+", text) if "://" in text else text.split()
    return any(
        len(part) >= MIN_STRONG_LENGTH
        and any(each.isdigit() for each in part)
        and any(each.isalpha() for each in part)
        for part in parts
    )


def text_forms(text: str) -> Iterable[str]:
    """As it is, and as JSON and HTML write it. JSON twice: the arguments of a tool are JSON inside a text,
    which is written as JSON again."""
    # Imported with the first secret: its table of characters takes a millisecond of every start.
    from html import escape

    found = {text: None}
    for plain in (True, False):
        once = json.dumps(text, ensure_ascii=plain)[1:-1]
        found |= dict.fromkeys((once, json.dumps(once, ensure_ascii=plain)[1:-1]))
    for form in list(found):
        for quoted in (escape(form), escape(form, quote=False)):
            # The templates of pages write quotes in the second way.
            found |= dict.fromkeys((quoted, quoted.replace("&quot;", "&#34;").replace("&#x27;", "&#39;")))
    return found


@cache
def _interface_words() -> frozenset[str]:
    """Statuses and decisions: a person of a tenant could otherwise hide them from the others."""
    from holdfast.types.decision_words import NO, YES
    from holdfast.types.status import CheckpointStatus, HoldStatus, NodeOutcome, RunStatus

    words = (*RunStatus, *HoldStatus, *CheckpointStatus, *NodeOutcome, *YES, *NO)
    return frozenset(str(each) for each in words)


def _texts(value: Any) -> Iterable[str]:
    if isinstance(value, str):
        if len(value) >= MIN_SECRET_LENGTH and value not in _interface_words():
            yield value
    elif isinstance(value, int) and not isinstance(value, bool):
        if abs(value) >= 10 ** (MIN_SECRET_LENGTH - 1) and value.bit_length() < 4096:
            yield str(value)
    elif isinstance(value, (bytes, bytearray)):
        yield from _texts(bytes(value).decode("utf-8", "replace"))
    elif isinstance(value, Mapping):
        for part in cast("Mapping[Any, Any]", value).values():
            yield from _texts(part)
    elif isinstance(value, (list, tuple, set, frozenset)):
        for part in cast("Iterable[Any]", value):
            yield from _texts(part)


redactor: Final = Redactor()
"""The redactor of this process."""
