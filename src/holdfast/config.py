"""Which variables of the environment are read, and what each of them does.

Settings of a program are arguments: `Holdfast(..., settings=RunSettings(...))`.
"""

from __future__ import annotations

ENVIRONMENT = {
    "HOLDFAST_STORE": "the store's address where neither the program nor `--store` names one: `sqlite:PATH`",
    "HOLDFAST_LEASE": (
        "how long a silent process keeps its runs, a duration such as `10s`; "
        "10 s for `run` and `resume`, 30 s for `worker`"
    ),
    "HOLDFAST_DEBUG": "set: the command line shows whole tracebacks instead of sentences",
    "HOLDFAST_CRASH": "`POINT:N`: the process dies the Nth time it reaches that crash point; for tests",
    "HOLDFAST_DEMO": "the folder that the demo works in",
    "HOLDFAST_KEYS": "the file with the keys of encryption at rest",
    "HOLDFAST_TORTURE_LOG": "where `holdfast torture` lets its processes write down effects; set by it",
    "NO_COLOR": "set: no colours",
}
