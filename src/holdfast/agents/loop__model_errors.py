"""Errors of models, as they are recorded and raised again."""

from __future__ import annotations

from holdfast.errors import ModelError, ModelRefusedError, ModelReplyError, ModelUnavailableError
from holdfast.model.record_bodies import ErrorInfo

_ERRORS = {
    kind.code: kind for kind in (ModelError, ModelRefusedError, ModelReplyError, ModelUnavailableError)
}


def model_error(info: ErrorInfo) -> ModelError:
    """As it was raised in the sub-step; an error of another type becomes a ModelError that names it."""
    kind = _ERRORS.get(info.code)
    return ModelError(f"{info.type}: {info.message}") if kind is None else kind(info.message)
