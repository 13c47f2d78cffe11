"""The providers of models, from a TOML file of the operator (HOLDFAST_MODELS) and from the keys in the
environment.

    model = "MODEL"                       # for stages that name none
    provider = "local"                    # for models whose provider is not known otherwise
    tools = ["coding"]                    # tools that models may use (default: none)

    [providers.local]
    base_url = "http://localhost:11434/v1"
    key = ""                              # the name of a variable; empty: no key is needed

    [prices."MODEL"]                      # per million tokens
    input = "2.50"
    output = "10"
"""

from __future__ import annotations

import asyncio
import os
import tomllib
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import msgspec

from holdfast.agents.anthropic import Cache
from holdfast.agents.catalogue import DEFAULTS, find_model
from holdfast.agents.effort import EffortWord, Protocol, effort_options
from holdfast.agents.model import Model
from holdfast.agents.model_http import Retries, Sleep
from holdfast.agents.prices import Prices
from holdfast.agents.protocols import MODELS
from holdfast.errors import SettingsError
from holdfast.frontends.dot.document import Pipeline, Stage
from holdfast.frontends.dot.model_choice import ModelChoice, model_choice, provider_of

VARIABLE: Final = "HOLDFAST_MODELS"


class ProviderSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`protocol`: openai (chat completions), responses, anthropic or gemini. `key`: the name of an
    environment variable; empty: it wants none. `options` go into each request. `effort`: whether the
    reasoning effort is sent, or the words that it knows. `cache`: with anthropic, how long it keeps the
    beginning of a conversation."""

    base_url: str
    protocol: Protocol = "openai"
    key: str = ""
    effort: bool | tuple[EffortWord, ...] = True
    max_tokens: int = 16_384
    cache: Cache = "5m"
    options: dict[str, Any] = {}
    headers: dict[str, str] = {}


class PriceSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Per million tokens."""

    input: str | float
    output: str | float
    cached: str | float | None = None
    written: str | float | None = None


class ModelSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`timeout`: seconds without a byte of an answer. `attempts`: of one request."""

    model: str = ""
    provider: str = ""
    tools: tuple[str, ...] = ()
    timeout: float = 300.0
    attempts: int = 5
    max_turns: int = 200
    providers: dict[str, ProviderSpec] = {}
    prices: dict[str, PriceSpec] = {}


BUILT_IN: Final = {
    "openai": ProviderSpec(protocol="responses", base_url="https://api.openai.com/v1", key="OPENAI_API_KEY"),
    "openai_compatible": ProviderSpec(base_url="https://api.openai.com/v1", key="OPENAI_API_KEY"),
    "anthropic": ProviderSpec(
        protocol="anthropic", base_url="https://api.anthropic.com", key="ANTHROPIC_API_KEY"
    ),
    "gemini": ProviderSpec(
        protocol="gemini", base_url="https://generativelanguage.googleapis.com", key="GEMINI_API_KEY"
    ),
}
_OTHER_KEYS: Final = {"GEMINI_API_KEY": "GOOGLE_API_KEY"}
"""Where a key may be too."""
_ADDRESSES: Final = {
    "openai": "OPENAI_BASE_URL",
    "openai_compatible": "OPENAI_BASE_URL",
    "anthropic": "ANTHROPIC_BASE_URL",
    "gemini": "GEMINI_BASE_URL",
}


def read_settings(path: str | os.PathLike[str]) -> ModelSettings:
    """Raises SettingsError, which names file and field."""
    source = os.fspath(path)
    try:
        raw = tomllib.loads(Path(path).read_text("utf-8"))
        return msgspec.convert(raw, ModelSettings)
    except OSError as error:
        raise SettingsError(
            f"the file {source} cannot be read: {error.strerror}.", hint=f"Check {VARIABLE}."
        ) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"{source} is not TOML: {error}.") from None
    except msgspec.ValidationError as error:
        raise SettingsError(f"{source}: {error}.", hint="The how-to on models shows such a file.") from None


def settings_from_environment() -> ModelSettings:
    """Those of the file that HOLDFAST_MODELS names, else none."""
    path = os.environ.get(VARIABLE)
    return read_settings(path) if path else ModelSettings()


class Providers:
    """Those of the settings, and the well-known ones. Keys are read when they are used, and kept nowhere."""

    def __init__(
        self,
        settings: ModelSettings | None = None,
        *,
        environment: Mapping[str, str] | None = None,
        retries: Retries | None = None,
        sleep: Sleep = asyncio.sleep,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        """`now`: prices of the catalogue may depend on the day."""
        self._now = now
        self.settings = settings_from_environment() if settings is None else settings
        self._environment = os.environ if environment is None else environment
        self._retries = retries or Retries(attempts=max(1, self.settings.attempts))
        self._sleep = sleep

    def spec(self, name: str) -> ProviderSpec | None:
        """From the settings; for well-known providers the environment may set another address."""
        declared = self.settings.providers.get(name)
        if declared is not None or name not in BUILT_IN:
            return declared
        address = self._environment.get(_ADDRESSES[name], "")
        known = BUILT_IN[name]
        return msgspec.structs.replace(known, base_url=address) if address else known

    @property
    def known(self) -> list[str]:
        return sorted({*BUILT_IN, *self.settings.providers})

    def is_usable(self, name: str) -> bool:
        """Whether it is known, and its key is set."""
        spec = self.spec(name)
        return spec is not None and (not spec.key or bool(self._key(spec.key)))

    def _key(self, variable: str) -> str:
        return self._environment.get(variable) or self._environment.get(_OTHER_KEYS.get(variable, ""), "")

    @property
    def any_usable(self) -> bool:
        return any(self.is_usable(name) for name in self.known)

    def model_for(self, stage: Stage, pipeline: Pipeline) -> Model:
        """Raises SettingsError, which names what is missing for this stage."""
        choice = self.choice_for(stage, pipeline)
        spec = self._required(stage, choice)
        name = choice.model.removeprefix(f"{choice.provider}/")
        value = stage.text("reasoning_effort") or pipeline.text("reasoning_effort")
        options = effort_options(
            spec.protocol, name, choice.effort, explicit=bool(value), known=spec.effort, options=spec.options
        )
        return self._made(name, choice.provider, spec, options)

    def choice_for(self, stage: Stage, pipeline: Pipeline) -> ModelChoice:
        """From the pipeline, else by the model's name, else from the settings."""
        choice = model_choice(stage, pipeline)
        settings = self.settings
        model = choice.model or settings.model
        value = stage.text("llm_provider") or pipeline.text("llm_provider")
        if value:
            model = model or DEFAULTS.get(choice.provider, "")
            return msgspec.structs.replace(choice, model=model, provider=choice.provider.lower())
        if not model and (found := self.default):
            return msgspec.structs.replace(choice, model=DEFAULTS[found], provider=found)
        return msgspec.structs.replace(choice, model=model, provider=self.owner_of(model))

    @property
    def default(self) -> str:
        """The provider whose default model is used where nothing names a model: the one of the settings, else
        the first well-known one with a key. Empty without any."""
        if self.settings.provider or self.settings.model:
            return self.settings.provider if self.settings.provider in DEFAULTS else ""
        return next((name for name in DEFAULTS if self.is_usable(name)), "")

    def owner_of(self, model: str) -> str:
        """The provider that a model gets where nothing else names one; empty if it is not known."""
        named, slash, _ = model.partition("/")
        if slash and named in self.settings.providers:
            return named
        by_name = provider_of(model)
        return by_name if by_name and self.is_usable(by_name) else self._otherwise() or by_name

    def _otherwise(self) -> str:
        """The provider that the settings name, or their only one."""
        declared = list(self.settings.providers)
        return self.settings.provider or (declared[0] if len(declared) == 1 else "")

    def _required(self, stage: Stage, choice: ModelChoice) -> ProviderSpec:
        where = f"stage {stage.id!r}"
        if not choice.model:
            raise SettingsError(
                f"{where} names no model, and there is no default.",
                hint=f"Set llm_model (stage, stylesheet or graph), or `model` in the file of {VARIABLE}.",
            )
        if not choice.provider:
            raise SettingsError(
                f"{where}: the provider of the model {choice.model!r} is unknown.",
                hint=f"Set llm_provider, or `provider` in {VARIABLE}. Known here: {', '.join(self.known)}.",
            )
        spec = self.spec(choice.provider)
        if spec is None:
            raise SettingsError(
                f"{where} uses the provider {choice.provider!r}, which is unknown.",
                hint=f"Known: {', '.join(self.known)}. Declare it in the file that {VARIABLE} names.",
            )
        if spec.key and not self._key(spec.key):
            raise SettingsError(
                f"{where} uses the provider {choice.provider!r}, whose key is not set.",
                hint=f"Set {spec.key}, or run without any model: --simulate.",
            )
        return spec

    def _made(self, name: str, provider: str, spec: ProviderSpec, options: dict[str, Any]) -> Model:
        variable = spec.key
        shared: dict[str, Any] = {
            "base_url": spec.base_url,
            "key": (lambda: self._key(variable)) if variable else None,
            "prices": self.prices_of(name, provider, spec.cache),
            "options": options,
            "headers": spec.headers,
            "timeout": self.settings.timeout,
            "retries": self._retries,
            "sleep": self._sleep,
        }
        if spec.protocol == "anthropic":
            shared |= {"max_tokens": spec.max_tokens, "cache": spec.cache}
        return MODELS[spec.protocol](name, **shared)

    def prices_of(self, model: str, provider: str = "", cache: Cache = "5m") -> Prices | None:
        """Those of the settings, else of the catalogue. An endpoint that the settings declare under the name
        of a provider may have other prices than that."""
        found = self.settings.prices.get(model)
        if found is None:
            known = (
                None
                if provider in self.settings.providers
                else find_model(provider, model, self._now(), cache=cache)
            )
            return None if known is None else known.prices
        return Prices(input=found.input, output=found.output, cached=found.cached, written=found.written)
