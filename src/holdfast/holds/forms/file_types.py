"""The type of a file by its content. Its name and the declared type must agree with that."""

from __future__ import annotations

from typing import Final

OTHER: Final = "application/octet-stream"
PLAIN: Final = "text/plain"
_HEAD: Final = 1024
_ZIP: Final = "application/zip"
_OFFICE = "application/vnd.openxmlformats-officedocument."
_OPEN = "application/vnd.oasis.opendocument."

# (offset, bytes, media type)
_SIGNATURES: Final[tuple[tuple[int, bytes, str], ...]] = (
    (0, b"%PDF-", "application/pdf"),
    (0, b"\x89PNG\r\n\x1a\n", "image/png"),
    (0, b"\xff\xd8\xff", "image/jpeg"),
    (0, b"GIF87a", "image/gif"),
    (0, b"GIF89a", "image/gif"),
    (8, b"WEBP", "image/webp"),
    (0, b"II*\x00", "image/tiff"),
    (0, b"MM\x00*", "image/tiff"),
    (8, b"WAVE", "audio/wav"),
    (0, b"ID3", "audio/mpeg"),
    (0, b"OggS", "audio/ogg"),
    (4, b"ftyp", "video/mp4"),
    (0, b"PK\x03\x04", _ZIP),
    (0, b"PK\x05\x06", _ZIP),
    (0, b"\x1f\x8b", "application/gzip"),
    (0, b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "application/x-ole-storage"),
    (0, b"MZ", "application/x-msdownload"),
    (0, b"\x7fELF", "application/x-executable"),
    (0, b"\xca\xfe\xba\xbe", "application/x-executable"),
    (0, b"\xcf\xfa\xed\xfe", "application/x-executable"),
    (0, b"#!", "text/x-shellscript"),
)
_MARKUP: Final = (b"<!doctype html", b"<html", b"<head", b"<body", b"<script", b"<iframe")
ACTIVE: Final = frozenset(
    {
        "text/html", "application/xhtml+xml", "image/svg+xml", "text/javascript", "text/x-shellscript",
        "application/x-msdownload", "application/x-executable", "application/java-archive",
    }
)  # fmt: skip
"""Types that may run code when they are opened: accepted only if a field names them."""

_BY_NAME: Final = {
    "pdf": "application/pdf", "png": "image/png", "jpg": "image/jpeg", "jpeg": "image/jpeg",
    "gif": "image/gif", "webp": "image/webp", "tif": "image/tiff", "tiff": "image/tiff",
    "svg": "image/svg+xml", "wav": "audio/wav", "mp3": "audio/mpeg", "ogg": "audio/ogg",
    "mp4": "video/mp4", "m4a": "video/mp4", "mov": "video/mp4", "zip": _ZIP, "gz": "application/gzip",
    "docx": f"{_OFFICE}wordprocessingml.document", "xlsx": f"{_OFFICE}spreadsheetml.sheet",
    "pptx": f"{_OFFICE}presentationml.presentation", "odt": f"{_OPEN}text", "ods": f"{_OPEN}spreadsheet",
    "odp": f"{_OPEN}presentation", "epub": "application/epub+zip", "jar": "application/java-archive",
    "doc": "application/msword", "xls": "application/vnd.ms-excel", "ppt": "application/vnd.ms-powerpoint",
    "msg": "application/vnd.ms-outlook", "txt": PLAIN, "log": PLAIN, "md": "text/markdown",
    "csv": "text/csv", "tsv": "text/tab-separated-values", "json": "application/json",
    "xml": "application/xml", "yaml": "application/yaml", "yml": "application/yaml",
    "html": "text/html", "htm": "text/html", "xhtml": "application/xhtml+xml", "js": "text/javascript",
    "mjs": "text/javascript", "sh": "text/x-shellscript", "bat": "application/x-msdownload",
    "cmd": "application/x-msdownload", "ps1": "application/x-msdownload",
    "exe": "application/x-msdownload", "dll": "application/x-msdownload",
    "msi": "application/x-msdownload", "com": "application/x-msdownload",
}  # fmt: skip
# Other types that a content may be declared as.
_WITHIN: Final = {
    _ZIP: frozenset({"application/epub+zip", "application/java-archive"}),
    "application/x-ole-storage": frozenset(
        {
            "application/msword", "application/vnd.ms-excel", "application/vnd.ms-powerpoint",
            "application/vnd.ms-outlook",
        }
    ),
    "text/html": frozenset({"application/xhtml+xml"}),
    "application/xml": frozenset({"text/xml"}),
    "video/mp4": frozenset({"audio/mp4", "video/quicktime"}),
    PLAIN: frozenset({"application/json", "application/yaml", "application/xml", "text/xml"}),
}  # fmt: skip


def sniff_media_type(data: bytes) -> str:
    """The media type that the content itself shows."""
    for at, mark, kind in _SIGNATURES:
        if data.startswith(mark, at):
            return kind
    head = data[:_HEAD].lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    if head.startswith(_MARKUP):
        return "text/html"
    if head.startswith((b"<svg", b"<?xml", b"<!doctype svg")):
        return "image/svg+xml" if b"<svg" in head else "application/xml"
    return PLAIN if _is_text(data) else OTHER


def media_type_for_name(name: str) -> str | None:
    """The media type by the file's name; none if its extension is unknown."""
    _, dot, ending = name.rpartition(".")
    return _BY_NAME.get(ending.lower()) if dot else None


def agrees(declared: str, found: str) -> bool:
    """Whether content of type `found` may be declared as `declared`. Unknown content claims no known type."""
    if declared == found:
        return True
    if found == PLAIN:
        return (declared.startswith("text/") and declared not in ACTIVE) or declared in _WITHIN[PLAIN]
    if found == _ZIP and declared.startswith((_OFFICE, _OPEN)):
        return True
    if found == OTHER:
        return declared not in _KNOWN and not declared.startswith("text/")
    return declared in _WITHIN.get(found, ())


def _is_text(data: bytes) -> bool:
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return False
    return not any(letter < " " and letter not in "\t\n\r\f" for letter in text[:_HEAD]) and "\0" not in text


_KNOWN: Final = frozenset(
    {kind for _, _, kind in _SIGNATURES} | set(_BY_NAME.values()) | set[str]().union(*_WITHIN.values())
)
