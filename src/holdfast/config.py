"""The environment variables that Holdfast reads, and what each of them does.

A program passes its settings as arguments: `Holdfast(..., settings=RunSettings(...))`.
"""

from __future__ import annotations

import os

ENVIRONMENT = {
    "HOLDFAST_STORE": (
        "address of the store if neither the program nor `--store` gives one: `sqlite:PATH`, "
        "`postgresql://...`, `mariadb://...`"
    ),
    "HOLDFAST_ENGINE": (
        "address of a Temporal cluster that drives new runs instead of the built-in workers, if neither the "
        "program nor `--engine` gives one: `temporal://HOST:7233/NAMESPACE`"
    ),
    "HOLDFAST_CELL": (
        "name of the cell of this process; cursors of lists contain it; default: `main`. One for "
        "each store, where several stand behind one address"
    ),
    "HOLDFAST_BLOBS": (
        "where values over 1 MiB are stored if the program names no place: `file:FOLDER` or "
        "`s3://BUCKET/PREFIX?endpoint=...&region=...`"
    ),
    "HOLDFAST_STATE_BLOBS": (
        "`0`: the state of a run that asks a person is not written to the blob store; by default it is, if "
        "that is S3"
    ),
    "HOLDFAST_LEASE": (
        "time after the last heartbeat until other workers may take over a process's runs, such as `10s`; "
        "default: 10 s for `run` and `resume`, 30 s for `worker`"
    ),
    "HOLDFAST_DEBUG": "if set, the command line prints full tracebacks instead of short error messages",
    "HOLDFAST_CRASH": (
        "`POINT:N`: the process exits at once the Nth time it reaches this crash point (for tests)"
    ),
    "HOLDFAST_DEMO": "the folder of `make demo`",
    "HOLDFAST_KEYS": "the key file for encryption at rest: its path, or its content",
    "HOLDFAST_DIRECTORY": (
        "the directory of people, groups and roles if the program names none: the path of a file, or `store`"
    ),
    "HOLDFAST_POLICIES": (
        "policy files for holds, separated by `:`; `store` adds the policies kept in the store"
    ),
    "HOLDFAST_NOTIFY": "the TOML file with the notification channels (mail, Slack, Teams, webhooks)",
    "HOLDFAST_SKIP_UI": "1: the web app is neither built nor served; plain pages take its place",
    "HOLDFAST_QUEUES": "the TOML file with the settings of queues and the brokers that they are bound to",
    "HOLDFAST_LINK_KEYS": "`ID:SECRET,...`: keys that sign links to holds, instead of the keys in the store",
    "HOLDFAST_SIGN_IN": (
        "for `serve`: the TOML file with the sign-in settings, such as an OpenID Connect provider"
    ),
    "HOLDFAST_INBOUND": (
        "for `serve`: the TOML file with the inbound channels: Slack, webhooks, replies to mails"
    ),
    "HOLDFAST_URL": "for clients and `holdfast mcp`: the address of a server",
    "HOLDFAST_TOKEN": "for clients and `holdfast mcp`: the access token for that server",
    "HOLDFAST_RETENTION": (
        "for `worker`, instead of the retention that flows declare: `keep=20,older=30d`, or `all`"
    ),
    "HOLDFAST_FEED_KEPT": (
        "for `worker`: how long events stay in the feed of all runs, a duration such as `7d`"
    ),
    "HOLDFAST_LOG": "write logs to stderr as `text` or `json`",
    "HOLDFAST_LOG_LEVEL": "lowest level to log: `DEBUG`, `INFO`, `WARNING`, `ERROR`",
    "HOLDFAST_STORED_LOG_LEVEL": (
        "lowest level of `ctx.log` whose lines are stored with the run: `debug`, `info` (default), "
        "`warning`, `error`, or `off`"
    ),
    "HOLDFAST_OTEL": (
        "`1`: export traces and metrics with OpenTelemetry, configured by its `OTEL_...` variables"
    ),
    "HOLDFAST_OTEL_CONTENT": (
        "`1`: spans include what agents, their models and tools say to each other, with known secrets masked"
    ),
    "HOLDFAST_OTEL_MESSAGES": "`1`: spans include error messages, which may contain data",
    "HOLDFAST_LOGS": (
        "the folder for the run directories of pipelines that name none (default: `.holdfast/logs`)"
    ),
    "HOLDFAST_PLAIN_DIRECTORIES": (
        "`1`: run directories of pipelines are written, in plain text, although the store is encrypted"
    ),
    "HOLDFAST_RUN_ID": "set for the commands of pipelines: the id of their run",
    "HOLDFAST_NODE": "set for the commands of pipelines: their stage",
    "HOLDFAST_VISIT": "set for the commands of pipelines: how often their stage was entered",
    "HOLDFAST_IDEMPOTENCY_KEY": (
        "set for the commands of pipelines: a key that is the same in all attempts of one visit"
    ),
    "HOLDFAST_ALLOW_CODE": (
        "`1`: commands of pipelines that were submitted to a server may run in this process (`--allow-code`)"
    ),
    "HOLDFAST_TOOL_ENV": (
        "names of further variables that commands of pipelines and tools get, separated by commas; `NAME_*` "
        "matches all that begin so"
    ),
    "HOLDFAST_TOOL_SANDBOX": (
        "prefix of each command of pipelines, agents and tools, such as `bwrap ... --`; `{workdir}`, "
        "`{stage_dir}`, `{logs}` and `{repository}` stand for folders"
    ),
    "HOLDFAST_TORTURE_LOG": "set by `holdfast torture`: the file in which its processes record effects",
    "HOLDFAST_BACKEND": (
        "what answers the prompts of pipelines: `model`, `simulation`, `agent:NAME`, `cli:COMMAND` or "
        "`file.py:name`"
    ),
    "HOLDFAST_AGENT_PERMISSIONS": (
        "the most that pipelines may allow command-line agents: `plan`, `edit` (default) or `full`"
    ),
    "HOLDFAST_MODELS": (
        "the TOML file with model providers, their prices, and the tools that models may use"
    ),
    "HOLDFAST_CONNECTIONS": (
        "the TOML file with the connections, secrets and tools that flow documents may name"
    ),
    "OPENAI_API_KEY": "the API key for OpenAI; likewise `ANTHROPIC_API_KEY`, `GEMINI_API_KEY`",
    "OPENAI_BASE_URL": "the base URL for OpenAI; likewise `ANTHROPIC_BASE_URL` and `GEMINI_BASE_URL`",
    "NO_COLOR": "if set, no colours",
}


def is_on(variable: str) -> bool:
    """Whether a variable that switches something on says so."""
    return os.environ.get(variable, "").strip().lower() in ("1", "true", "yes", "on")
