"""The versions of partner libraries that an extra allows: absent, too old and too new ones are refused with
what to install (IN-1, IN-2)."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

from holdfast.errors import VersionMismatchError


class PartnerVersionError(VersionMismatchError, ImportError):
    """An installed partner library is outside the range that is tested. Also an ImportError: it is raised
    while the integration is imported."""


def require_partner(distribution: str, lowest: str, below: str | None, extra: str) -> None:
    """Raises ModuleNotFoundError if it is not installed, PartnerVersionError if it is not of this range.
    `below` is None where every newer one is allowed."""
    try:
        found = version(distribution)
    except PackageNotFoundError as error:
        raise ModuleNotFoundError(
            f"this integration needs {distribution} {lowest} or later: pip install 'holdfast-flow[{extra}]'",
            name=distribution,
        ) from error
    numbers = _numbers(found)
    if numbers < _numbers(lowest) or (below is not None and numbers >= _numbers(below)):
        tested = f"{lowest} or later" if below is None else f"{lowest} up to but not including {below}"
        raise PartnerVersionError(
            f"{distribution} {found} is installed; {tested} is tested.",
            hint=f"Run: pip install 'holdfast-flow[{extra}]'",
            found=found,
            lowest=lowest,
            below=below,
        )


def _numbers(text: str) -> tuple[int, ...]:
    """`2.66.0rc1` as (2, 66, 0): a pre-release counts as its release."""
    found: list[int] = []
    for part in text.split("+")[0].split("."):
        digits = part[: len(part) - len(part.lstrip("0123456789"))]
        if not digits:
            break
        found.append(int(digits))
    return tuple(found)
