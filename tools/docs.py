"""The documentation: python tools/docs.py [pages | check | build]

pages   write the reference pages that are made of the code
check   change nothing; fail if such a page is stale, in no menu, or a link leads nowhere
build   all of this, then the site in build/docs/site (make docs)
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from urllib.parse import unquote

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

DOCS = ROOT / "docs"
SITE = ROOT / "build" / "docs" / "site"
CONFIG = ROOT / "zensical.toml"
FENCE = re.compile(r"^(```|~~~).*?^\1\s*$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"(?<!\\)\[(?:[^\[\]]|\[[^\]]*\])*\]\(([^()\s]+)(?:\s+\"[^\"]*\")?\)")
HEADING = re.compile(r"^#{1,6} +(.+?) *#*$", re.MULTILINE)
ANCHOR = re.compile(r"<a id=\"([^\"]+)\"")


def sources() -> list[Path]:
    return sorted(
        [*DOCS.rglob("*.md"), *ROOT.glob("*.md"), *(ROOT / "examples").glob("*.md"), ROOT / "bench/README.md"]
    )


# ---- links


def broken_links() -> list[str]:
    """Of all pages: `page: link` for each that leads to no file or heading of ours."""
    return [
        f"{page.relative_to(ROOT)}: {link}"
        for page in sources()
        for link in links(page)
        if not is_valid_link(page, link)
    ]


def links(page: Path) -> Iterator[str]:
    text = re.sub(r"`[^`\n]*`", "", FENCE.sub("", page.read_text("utf-8")))
    yield from (found for found in LINK.findall(text) if not re.match(r"[a-z]+:", found))


def is_valid_link(page: Path, link: str) -> bool:
    place, _, anchor = unquote(unescape(link)).partition("#")
    target = (page.parent / place).resolve() if place else page
    if not target.exists():
        return False
    return not anchor or target.suffix != ".md" or anchor in anchors(target)


def anchors(page: Path) -> set[str]:
    text = page.read_text("utf-8")
    return {slug(found) for found in HEADING.findall(FENCE.sub("", text))} | set(ANCHOR.findall(text))


def slug(heading: str) -> str:
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "")
    return re.sub(r"[\s-]+", "-", re.sub(r"[^\w\s-]", "", plain).strip().lower())


# ---- the menu

PARTS = {
    "how-to": "How to",
    "explanation": "Explanation",
    "reference": "Reference",
    "adr": "Decisions",
    "ledger": "The ledger",
}
PROJECT = ("adr", "ledger")  # under one heading, folded: more than a hundred pages


def menu() -> list[str]:
    """The tree of pages as entries of `nav`; a page's name is its first heading."""
    top = [_entry(DOCS / name) for name in ("index.md", "tutorial.md")]
    parts = {part: _group(name, _part(DOCS / part)) for part, name in PARTS.items()}
    project = _group("The project", [parts.pop(part) for part in PROJECT])
    return [*top, *parts.values(), project]


def _part(folder: Path) -> list[str]:
    """Under the headings of the first page, in its order, where that names the page; then the others."""
    left = sorted(
        folder.rglob("*.md"), key=lambda page: page.name if folder.name == "adr" else title(page).casefold()
    )
    entries: list[str] = []
    for heading, pages in groups().items():
        inside = [page for page in pages if page in left]
        left = [page for page in left if page not in inside]
        if inside:
            entries.append(_group(heading, [_entry(page) for page in inside]))
    return entries + [_entry(page) for page in left]


def groups() -> dict[str, list[Path]]:
    """The third-level headings of the first page, with the pages that are linked under each."""
    index = DOCS / "index.md"
    found: dict[str, list[Path]] = {}
    for part in re.split(r"^## ", index.read_text("utf-8"), flags=re.MULTILINE):
        for group in re.split(r"^### ", part, flags=re.MULTILINE)[1:]:
            heading, _, text = group.partition("\n")
            places = [link.partition("#")[0] for link in LINK.findall(text)]
            found[heading.strip()] = [(DOCS / place).resolve() for place in places]
    return found


def _group(name: str, entries: list[str]) -> str:
    return f"{{ {_quoted(name)} = [{', '.join(entries)}] }}"


def _entry(page: Path) -> str:
    return f"{{ {_quoted(title(page))} = {_quoted(page.relative_to(DOCS).as_posix())} }}"


def title(page: Path) -> str:
    found = HEADING.search(FENCE.sub("", page.read_text("utf-8")))
    return found[1].replace("`", "") if found else page.stem


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "").replace('"', "'") + '"'


def pages_outside_menu() -> list[str]:
    """Pages in no part of the menu, and pages without a title."""
    lost = [
        page
        for page in DOCS.rglob("*.md")
        if page.relative_to(DOCS).parts[0] not in {*PARTS, "index.md", "tutorial.md"}
    ]
    bare = [page for page in DOCS.rglob("*.md") if not HEADING.search(page.read_text("utf-8"))]
    return [
        f"{page.relative_to(ROOT)} is in no part of the menu (tools/docs.py) or has no title"
        for page in lost + bare
    ]


# ---- commands


def check() -> list[str]:
    from tools import pages

    stale = [f"{path.relative_to(ROOT)} is stale: run python tools/docs.py pages" for path in pages.stale()]
    return stale + pages_outside_menu() + [f"broken link: {found}" for found in broken_links()]


def build() -> int:
    """The site, from a copy of the pages: it stands alone, so links that leave `docs` become plain text."""
    work = SITE.parent / "docs"
    shutil.rmtree(SITE.parent, ignore_errors=True)
    shutil.copytree(DOCS, work, ignore=shutil.ignore_patterns("*.toml"))
    for page in work.rglob("*.md"):
        page.write_text(_localised(page.read_text("utf-8"), DOCS / page.relative_to(work)), "utf-8")
    nav = "nav = [\n    " + ",\n    ".join(menu()) + ",\n]\n\n"
    config = CONFIG.read_text("utf-8").replace("[project.theme]", f"{nav}[project.theme]", 1)
    (SITE.parent / CONFIG.name).write_text(config, "utf-8")
    program = Path(sys.executable).parent / "zensical"
    done = subprocess.run([program, "build", "--clean", "--strict"], cwd=SITE.parent)
    if done.returncode == 0:
        print(f"The site is in {SITE.relative_to(ROOT)}: open {SITE.relative_to(ROOT)}/index.html")
    return done.returncode


def _localised(text: str, page: Path) -> str:
    """A link that leaves the documentation is shown as plain code: the site stands alone."""

    def plain(found: re.Match[str]) -> str:
        link = found[1]
        if re.match(r"[a-z]+:", link) or link.startswith("#"):
            return found[0]
        target = (page.parent / link.partition("#")[0]).resolve()
        if target.is_relative_to(DOCS) and target.is_file():
            return found[0]
        return found[0][1 : found[0].index("](")]

    return LINK.sub(plain, text)


def main(words: list[str]) -> int:
    what = words[0] if words else "build"
    if what not in ("pages", "check", "build"):
        print(__doc__, file=sys.stderr)
        return 2
    from tools import pages

    if what != "check":
        for path in pages.write():
            print(f"wrote {path.relative_to(ROOT)}")
    problems = [] if what == "pages" else check()
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else build() if what == "build" else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
