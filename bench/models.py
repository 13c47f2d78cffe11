"""Row L: our readers of models' streams beside the vendors' SDKs, in CPU time on streams of 3,000 pieces."""

from __future__ import annotations

import json
import subprocess
from typing import Final

from bench.lines import Line
from bench.measure import Plan, line, ratios
from tools import partners, setup

_SDKS: Final = {
    "responses": ("openai, responses", "L-responses"),
    "openai": ("openai, chat completions", "L-openai"),
    "anthropic": ("anthropic", "L-anthropic"),
    "gemini": ("google-genai", "L-gemini"),
}


def row_l(plan: Plan) -> list[Line]:
    why = partners.make(partners.MODEL_SDKS)
    if why:
        return [Line(row="L", name="streams of models, not measured", value=None, unit="", note=why)]
    done = subprocess.run(
        [str(partners.MODEL_SDKS.python), "-m", "bench.peers.model_readers_peer", str(plan.rounds)],
        cwd=setup.ROOT, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=600, check=True,
    )  # fmt: skip
    found: dict[str, list[float]] = json.loads(done.stdout.splitlines()[-1])
    lines: list[Line] = []
    for kind, (sdk, target) in _SDKS.items():
        ours, theirs = found[f"{kind}:ours"], found[f"{kind}:theirs"]
        said = f"a stream of 3,000 pieces, {sdk}"
        lines.append(line("L", said, ratios(ours, theirs), "x its SDK", target=target))
        lines.append(line("L", f"{said}, ours", ours, "ms", scale=1e3))
    return lines
