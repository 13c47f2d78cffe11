"""Which variables of the environment are read, and what each of them does.

Settings of a program are arguments: `Holdfast(..., settings=RunSettings(...))`.
"""

from __future__ import annotations

ENVIRONMENT = {
    "HOLDFAST_STORE": "the store's address where neither the program nor `--store` names one: `sqlite:PATH`, `postgresql://...`",
    "HOLDFAST_LEASE": (
        "how long a silent process keeps its runs, a duration such as `10s`; "
        "10 s for `run` and `resume`, 30 s for `worker`"
    ),
    "HOLDFAST_DEBUG": "set: the command line shows whole tracebacks instead of sentences",
    "HOLDFAST_CRASH": "`POINT:N`: the process dies the Nth time it reaches that crash point; for tests",
    "HOLDFAST_DEMO": "the folder that the demo works in",
    "HOLDFAST_KEYS": "the file with the keys of encryption at rest, or its content",
    "HOLDFAST_DIRECTORY": (
        "who people, groups and roles are, where the program does not say: the path of a file, or `store`"
    ),
    "HOLDFAST_POLICIES": "files with rules for holds, and `store` for those in it, apart by `:`",
    "HOLDFAST_NOTIFY": "the TOML file with the channels by which people are told that a decision waits",
    "HOLDFAST_LINK_KEYS": "`ID:SECRET,...`: what signs links to holds, in place of the keys in the store",
    "HOLDFAST_SIGN_IN": "for `serve`: the TOML file with how people sign in, such as at an OpenID provider",
    "HOLDFAST_INBOUND": "for `serve`: the TOML file with the ways in: Slack, webhooks, replies to mails",
    "HOLDFAST_URL": "for clients and `holdfast mcp`: the address of a server",
    "HOLDFAST_TOKEN": "for clients and `holdfast mcp`: the token that the server gave out",
    "HOLDFAST_RETENTION": "for `worker`, in place of what flows declare: `keep=20,older=30d`, or `all`",
    "HOLDFAST_FEED_KEPT": "for `worker`: how long the feed over all runs remembers, a duration such as `7d`",
    "HOLDFAST_LOG": "logs on stderr as `text` or `json`",
    "HOLDFAST_LOG_LEVEL": "from which level on: `DEBUG`, `INFO`, `WARNING`, `ERROR`",
    "HOLDFAST_OTEL": "`1`: traces and metrics by OpenTelemetry, as its own `OTEL_...` variables say",
    "HOLDFAST_OTEL_MESSAGES": "`1`: spans tell what errors say, which may hold data",
    "HOLDFAST_LOGS": "the folder for run directories of pipelines that name none; else `.holdfast/logs`",
    "HOLDFAST_RUN_ID": "set for the commands of pipelines: whose they are",
    "HOLDFAST_NODE": "set for the commands of pipelines: their stage",
    "HOLDFAST_VISIT": "set for the commands of pipelines: how often their stage was entered",
    "HOLDFAST_IDEMPOTENCY_KEY": "set for the commands of pipelines: the same in all tries of one visit",
    "HOLDFAST_TORTURE_LOG": "where `holdfast torture` lets its processes write down effects; set by it",
    "HOLDFAST_BACKEND": (
        "who answers prompts of pipelines: `model`, `simulation`, `cli:COMMAND` or `file.py:name`"
    ),
    "HOLDFAST_MODELS": (
        "the TOML file with the providers of models, their prices, and the tools that models may use"
    ),
    "OPENAI_API_KEY": "the key for models of OpenAI; likewise `ANTHROPIC_API_KEY` and `GEMINI_API_KEY`",
    "OPENAI_BASE_URL": "another address for them; likewise `ANTHROPIC_BASE_URL` and `GEMINI_BASE_URL`",
    "NO_COLOR": "set: no colours",
}
