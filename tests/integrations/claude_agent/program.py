"""The folder of the fake program: what the model does, and which calls ran."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from claude_agent_sdk import ClaudeAgentOptions

CLI = Path(__file__).with_name("fake_claude.py")


class Claude:
    def __init__(self, folder: Path, *calls: Any) -> None:
        self.folder = folder
        (folder / "script.json").write_text(json.dumps(calls))
        self.program = folder / "claude"
        self.program.write_text(f'#!/bin/sh\nexport FAKE_CLAUDE={folder}\nexec {sys.executable} {CLI} "$@"\n')
        self.program.chmod(0o755)

    @property
    def calls(self) -> list[str]:
        path = self.folder / "calls"
        return path.read_text().splitlines() if path.exists() else []

    def options(self, resume: str | None = None, **env: str) -> ClaudeAgentOptions:
        return ClaudeAgentOptions(cli_path=self.program, resume=resume, env=env)
