"""The commands of `holdfast`, one module each, named after the command.

`GROUPS` lists them with the first line of their help, in the order and under the headings of `--help`. A
module is imported only when its command is called, and imports what is slow to load (the engine, stores, the
server) inside its functions: `holdfast --help` and `holdfast COMMAND --help` stay quick.
"""

from __future__ import annotations

from keyword import iskeyword
from typing import Final

GROUPS: Final[dict[str, dict[str, str]]] = {
    "Runs": {
        "new": "Create a new project: a flow that runs and tests that pass.",
        "run": "Start a run and advance it until it ends or waits.",
        "resume": "Resume a run after a crash, an answer or a failure.",
        "cancel": "Cancel a run, or all runs that a search finds.",
        "fork": "Create a new run from a checkpoint of another run.",
        "rewind": "Fork a run and replace it by the fork.",
        "steer": "Send a message to the agent that is running in a run.",
        "worker": "Run a worker that advances runs from the store.",
        "serve": "Serve runs and holds over HTTP, with pages for people.",
    },
    "Decisions": {
        "inbox": "Decide your open holds in the terminal.",
        "holds": "List, show, decide and reassign holds.",
        "answer": "Answer a hold.",
        "preview": "Show what each answer to a hold would lead to.",
        "policy": "Check, simulate and store policies for holds.",
        "calendars": "Set, show and check business calendars.",
        "links": "Create and revoke signed links to holds.",
        "notify": "Test notification channels, deliver and replay messages.",
        "evidence": "Write one decision to a file that can be verified offline.",
        "audit": "List, sign and verify the audit log of holds.",
    },
    "Inspect runs": {
        "runs": "List runs, newest first.",
        "show": "Show a run, now or at an earlier record.",
        "diagnose": "Explain why a run waits or failed, and what to do.",
        "top": "Show workers, lanes, holds and delays, live.",
        "checkpoints": "List a run's checkpoints, newest first.",
        "diff": "Compare two checkpoints, branches, runs or flow documents.",
        "replay": "Repeat a run's decisions from its journal and compare them.",
        "postmortem": "Write a report of a run's whole history.",
        "breakpoints": "List runs that stopped at a breakpoint, and continue them.",
        "graph": "Draw a flow, a pipeline, or a run with its states.",
    },
    "Flows and pipelines": {
        "check": "Report every problem of flows, documents and pipelines.",
        "validate": "Check pipelines and report every problem with its position.",
        "torture": "Kill a flow at every crash point and check that it is safe.",
        "flows": "List versions of flows, check new ones, migrate runs.",
        "deploy": "Deploy a flow document, so that any worker can run it.",
        "deployments": "Create, list, show, delegate and revoke deployments.",
        "skills": "Publish, list, show and yank skills.",
        "models": "List models with their context window and prices.",
        "schema": "Print the JSON Schema of flow documents or of verdicts.",
        "interface": "Read and fork checkpoints in the graph document's format.",
    },
    "Schedules, events and queues": {
        "schedules": "Set, list, pause, trigger, fill in and delete schedules.",
        "events": "Send events to runs that wait for them (`ctx.wait_for`).",
        "callbacks": "Complete callbacks that runs wait for (`ctx.callback`).",
        "queue": "Publish, claim, complete and requeue messages of queues.",
        "limits": "Limit how many runs are active at once or start per period.",
    },
    "People and access": {
        "sign-in": "Print an address that signs a browser in once.",
        "sign-out": "End every session of a person.",
        "tokens": "Create, list and revoke API tokens.",
        "directory": "Manage people, groups, roles and absences.",
        "keys": "Create and rotate keys for encryption at rest.",
        "mcp": "Serve an agent over MCP (stdin and stdout).",
    },
    "Store and operation": {
        "doctor": "Check the store and say what to do.",
        "dead": "List, show, retry and discard dead letters.",
        "prune": "Delete old checkpoints and ended runs.",
        "export": "Write a run with its whole history to a file.",
        "import": "Import an exported run.",
        "promote": "Move a whole store, or move waiting runs to an engine and back.",
        "migrate": "Update the schema of a shared store.",
        "engine": "Set up the Temporal cluster that drives runs.",
        "completion": "Print the completion script of a shell.",
    },
}
COMMANDS: Final = {name: line for group in GROUPS.values() for name, line in group.items()}


def module_of(command: str) -> str:
    """`sign-in` is in `sign_in`; `import`, a keyword of Python, in `import_`."""
    name = command.replace("-", "_")
    return f"{__name__}.{name}_" if iskeyword(name) else f"{__name__}.{name}"
