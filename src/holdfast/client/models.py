"""What answers are made of."""

# Written by tools/client.py from the OpenAPI document. Do not change it here.
# ruff: noqa: RUF012 (msgspec copies empty lists and dicts)
from __future__ import annotations

from typing import Any, Literal

from holdfast.client.model import Model


class AnswerSchema(Model, kw_only=True):
    """`json_schema`: what `response_data` must be; none: any object. `request_hash`: of what is shown."""

    json_schema: Any
    request_hash: str
    decisions: list[str] | None


class AnswerTaken(Model, kw_only=True):
    """`decision`: of the hold; null if it was skipped."""

    id: str
    status: str
    decision: str | None
    resolved_by: str | None


class Arrangement(Model, kw_only=True):
    """`nodes` by id; of a graph, a node inside of another one has its name in front: `each/pay`."""

    nodes: dict[str, NodeBox]


class Artifact(Model, kw_only=True):
    """`digest`: of its blob, for a large one. `size`: the bytes of the download."""

    name: str
    media_type: str
    size: int
    digest: str | None = None


class Assignee(Model, kw_only=True):
    type: str
    value: str
    reason: str | None = None


class Attempt(Model, kw_only=True):
    """One more attempt and why. `error`: that of the attempt before it. `seq`: the record that began it."""

    reason: str
    attempt: int
    at: str
    error: dict[str, str] | None
    wake_at: str | None
    seq: int = -1


class AttemptSpan(Model, kw_only=True):
    """One attempt. `worker`: empty if no record names it; `term` is the number of its claim of the run."""

    number: int
    reason: str
    started_at: str
    ended_at: str | None
    term: int
    worker: str
    error: dict[str, str] | None
    traceback: str


class Audit(Model, kw_only=True):
    """`hash` covers the previous hash, these fields and the digest of `data`: one chain per tenant.
    `text`: the record as one sentence, with the question for callers who may see all holds; it is not
    covered."""

    id: str
    seq: int
    type: str
    module: str
    tenant: str
    checkpoint_id: str | None
    execution_id: str | None
    at: str
    actor: str
    action: str
    text: str
    data: Any
    data_digest: str
    prev_hash: str
    hash: str


class AuditHead(Model, kw_only=True):
    """The head of the audit: keep it where users with access to the store cannot change it."""

    tenant: str
    seq: int
    hash: str
    at: str | None


class AuditVerification(Model, kw_only=True):
    """`problem`: none, or edited, removed, reordered, truncated, at record `seq`."""

    tenant: str
    whole: bool
    records: int
    problem: str | None
    seq: int | None
    why: str


class Away(Model, kw_only=True):
    substitute: str
    since: str | None = None
    until: str | None = None


class BlockedEntity(Model, kw_only=True):
    """An entity that stays taken: its run was stopped at `since`, and the code of `nodes` still runs."""

    entity: str
    run: str
    flow: str
    nodes: str
    since: str


class Bulk(Model, kw_only=True):
    """`left_out`: number by reason. In a preview `done` is the number that would be decided."""

    preview: bool
    done: int
    left_out: dict[str, int]
    items: list[BulkItem]


class BulkItem(Model, kw_only=True):
    """`placed_until`: when it is decided; it can be undone until then."""

    hold: str
    done: bool
    code: str | None = None
    why: str | None = None
    status: str | None = None
    version: int | None = None
    placed_until: str | None = None


class BulkRunItem(Model, kw_only=True):
    """`dead`: it is a dead letter. `text`: in a preview what would happen to it, as sentences; empty where
    too much history would have to be read for that."""

    run: str
    done: bool
    status: str | None = None
    code: str | None = None
    why: str | None = None
    dead: bool = False
    text: list[str] = []


class BulkRunsResult(Model, kw_only=True):
    """In a preview `done` is the number of runs that would be changed."""

    preview: bool
    done: int
    left_out: dict[str, int]
    items: list[BulkRunItem]


class Call(Model, kw_only=True):
    """A sub-step: a tool call, a model call, a memory read."""

    name: str
    effect: str
    at: str
    seq: int
    value: Any
    error: dict[str, str] | None
    tokens: int
    cost: float
    traceback: str = ""


class Callback(Model, kw_only=True):
    """`status`: waiting, completed or failed. `expires_at`: then the run gives it up; a heartbeat makes it
    later where the run asks for heartbeats."""

    name: str
    status: str
    expires_at: str | None


class Checkpoint(Model, kw_only=True):
    """A hold under the names of the documents, on the paths that they name. `core_id`: its deployment, or
    `flow:NAME` if it was started without one."""

    id: str
    block_index: int
    instance_key: str | None
    prompt: str
    options: list[Option] | None
    assignee_type: str
    assignee_resolved: Assignee
    context: Any
    schema: Any
    priority: str
    tags: list[str]
    status: str
    expires_at: str | None
    expiry_action: str | None
    escalation_target: str | None
    notification_sent: bool
    reminder_count: int
    reminder_interval_m: int | None
    resolution: dict[str, Any] | None
    resolved_by: str | None
    resolved_at: str | None
    created_at: str
    updated_at: str
    version: int
    assignment_epoch: int
    last_notified_at: str | None
    claimed_by: str | None
    claim_until: str | None
    resumed_at: str | None
    request_hash: str
    escalation_count: int
    original_timeout_s: float | None
    cancelled_by: str | None
    cancelled_at: str | None
    cancel_reason: str | None
    placed_by: str | None
    placed_decision: str | None
    placed_until: str | None
    paused_at: str | None
    started_by: str | None
    terms: dict[str, Any]
    title: str = ""
    why: str = ""
    due: str = ""
    decided: list[DecidedValue] = []
    idempotent_replay: bool | None = None
    core_id: str
    tenant_id: str
    execution_id: str
    flow_name: str
    node_id: str
    checkpoint_type: str
    assignee_raw: str | None
    hitl_message_id: str | None


class CheckpointDetail(Model, kw_only=True):
    """A checkpoint with its state. Values that are declared secret are hidden."""

    id: str
    run_id: str
    flow_id: str
    version: str
    node_id: str
    seq: int
    status: str
    created_at: str
    state_size: int
    has_memory_snapshot: bool = False
    turn: int | None = None
    pending_input_context: PendingContext | None = None
    parent_id: str | None
    original_input: Any
    node_states: dict[str, NodeState]
    completed_node_ids: list[str]
    skipped_node_ids: list[str]
    pending_edges: list[str]
    pending_inputs: list[PendingContext]
    state: Any
    artifacts: Any
    diagnostics: dict[str, Any]
    visits: dict[str, int]
    retries: dict[str, int]
    loops: dict[str, int]
    goal_gates: dict[str, bool]
    memory: Any = None
    agents: dict[str, Any] = {}
    lineage: dict[str, Any] = {}


CheckpointStatus = Literal["active", "completed", "failed", "pending_input"]


class CheckpointSummary(Model, kw_only=True):
    """A checkpoint without its state."""

    id: str
    run_id: str
    flow_id: str
    version: str
    node_id: str
    seq: int
    status: str
    created_at: str
    state_size: int
    has_memory_snapshot: bool = False
    turn: int | None = None
    pending_input_context: PendingContext | None = None


class Circle(Model, kw_only=True):
    key: str
    name: str
    members: list[str]


class ClaimedMessages(Model, kw_only=True):
    items: list[Message]


class ConversationCall(Model, kw_only=True):
    """A tool call. `arguments`: as the model gave them. `hold`: the question whether it may run, if there
    is one."""

    id: str
    tool: str
    arguments: Any = None
    hold: str | None = None


class ConversationMessage(Model, kw_only=True):
    """`role`: system, user, assistant or tool. `call`: of a tool's result, the id of its call. The text of
    a tool comes from outside: it is not checked. `omitted`: it is too large to be here; the step of the
    run has it."""

    role: str
    turn: int
    text: str = ""
    calls: list[ConversationCall] = []
    call: str = ""
    failed: bool = False
    omitted: bool = False


class Count(Model, kw_only=True):
    """Counting stops at 10,000."""

    count: int


class DeadNotice(Model, kw_only=True):
    id: int
    at: str | None
    topic: str
    hold_id: str | None
    attempts: int
    error: str | None


class DeadRun(Model, kw_only=True):
    """`suspects`: nodes by how often they were running when a worker stopped heartbeating."""

    run: Run
    deaths: list[Death]
    suspects: dict[str, int]


class Death(Model, kw_only=True):
    worker: str
    at: str | None
    head: int
    status: str
    nodes: list[str]
    unknown: str


class DecidedValue(Model, kw_only=True):
    """A value of a decision. `proposed`: what the machine proposed; `edited`: decided with another value."""

    field: str
    label: str
    value: Any
    proposed: Any = None
    edited: bool = False


class Defaults(Model, kw_only=True):
    """Defaults for holds that do not set these themselves. Durations as written."""

    assignee: str | None = None
    priority: str | None = None
    calendar: str | None = None
    timeout: str | None = None
    on_timeout: str | None = None
    reminder: str | None = None


class Delegation(Model, kw_only=True):
    to: str
    since: str | None
    until: str | None
    revoked: bool


class Deployment(Model, kw_only=True):
    id: str
    name: str
    flow: str
    version: str
    mode: str
    skills: list[str]
    policies: list[str]
    defaults: Defaults
    delegation: Delegation | None
    created_at: str | None
    created_by: str


class Diagnostic(Model, kw_only=True):
    """`line` and `column` count from 1; 0: no position."""

    rule: str
    severity: str
    message: str
    node: str = ""
    edge: list[str] | None = None
    fix: str = ""
    line: int = 0
    column: int = 0


class Difference(Model, kw_only=True):
    """`was`: what happened. `would_be`: under the rules. `field`: rule, assignee, approval, deadline, ..."""

    field: str
    was: str
    would_be: str


class Draft(Model, kw_only=True):
    """An answer that may be incomplete."""

    decision: Any = None
    response_data: Any = None
    comment: Any = None
    request_hash: str | None = None


class EdgeLayout(Model, kw_only=True):
    label: str = ""
    ui: Any = None


class EditableDocument(Model, kw_only=True):
    """`source`: the text of the draft; without a draft, that of the current version."""

    name: str
    format: str
    saved_by: str | None
    saved_at: str | None
    version: str | None
    source: str


class Emitted(Model, kw_only=True):
    """A piece of live output: `ctx.emit` and `ctx.log`. `kind`: `text`, `log`, `progress`, ... `attempt`:
    whose it is; text of an earlier attempt than the last is void."""

    kind: str
    at: str
    data: Any
    attempt: int = 1


class Entry(Model, kw_only=True):
    """An entry of a hold's history. `text`: as one sentence; `seq`: its number in the tenant's audit."""

    id: str
    seq: int
    at: str
    actor: str
    action: str
    data: dict[str, Any]
    text: str


class Event(Model, kw_only=True):
    """`number` grows by one with each event of a run; it is the event's id in the stream."""

    run: str
    number: int
    at: str | None
    type: str
    node: str
    scope: str
    data: dict[str, Any]


EventNames = Literal["own", "seed"]


class EventPage(Model, kw_only=True):
    """`next`: send it as `after` for the next page; none: the run has ended with this event. `last`: the
    number of the last event. `ended`: no more events will follow."""

    items: list[Event]
    next: int | None
    last: int
    ended: bool


class Failure(Model, kw_only=True):
    """Runs that ended with the same error, newest first. `node`: where the newest failed."""

    error: str
    node: str
    runs: list[str]
    last_at: str | None


class Figures(Model, kw_only=True):
    """At one moment, over all tenants. Lags: the age of the oldest item that is due. `suspects`: runs that
    lost two workers in a row without progress. `timers`: waits for a time."""

    at: str
    lanes: list[Lane]
    statuses: dict[str, int]
    dead: int
    pending_holds: int
    oldest_hold_seconds: float
    timer_lag_seconds: float
    hold_lag_seconds: float
    schedule_lag_seconds: float
    outbox_waiting: int
    outbox_dead: int
    suspects: int
    timers: int
    next_timer_seconds: float | None
    unserved_runs: list[UnservedRuns]
    unserved_schedules: list[UnservedSchedules]


class File(Model, kw_only=True):
    """A file of a hold. `file` is what the answer has in the field."""

    field: str
    file: dict[str, Any]


class Filters(Model, kw_only=True):
    """AND across the fields, OR within each. `q`: words as in the inbox, `priority>=high due<2d refund`."""

    view: str = "all"
    q: str | None = None
    status: list[str] = []
    type: list[str] = []
    assignee: list[str] = []
    group: list[str] = []
    role: list[str] = []
    priority: list[str] = []
    deployment: list[str] = []
    flow: list[str] = []
    run: list[str] = []
    instance_key: list[str] = []
    tag: list[str] = []
    text: str | None = None
    created_from: str | None = None
    created_to: str | None = None
    expires_from: str | None = None
    expires_to: str | None = None
    resolved_by: list[str] = []
    resolved_from: str | None = None
    resolved_to: str | None = None


class Firing(Model, kw_only=True):
    """What became of an instant. `last`: the last of several that were missed; `instant` is the first."""

    instant: str | None
    at: str | None
    outcome: str
    run: str | None
    reason: str
    last: str | None


class Flow(Model, kw_only=True):
    """Versions, newest first. `description`: what it does, if this server has its code. `input_schema`:
    the JSON Schema of the input that its newest version takes."""

    name: str
    versions: list[FlowVersion]
    description: str = ""
    input_schema: dict[str, Any] = {}


class FlowChange(Model, kw_only=True):
    """`kind`: added, removed or changed; `path` such as `config.timeout`."""

    path: str
    kind: str
    before: Any = None
    after: Any = None


class FlowCheck(Model, kw_only=True):
    """For each active run on another version, whether it fits this one. Nothing is changed."""

    flow: str
    version: str
    fits: int
    breaks: int
    runs: list[RunFit]


class FlowDiff(Model, kw_only=True):
    """`same`: both mean the same. `reordered`: the nodes stand in another order. `settings`: other keys."""

    same: bool
    nodes: list[FlowPartDiff]
    edges: list[FlowPartDiff]
    settings: list[FlowChange]
    layout: list[FlowChange]
    reordered: bool


class FlowGraph(Model, kw_only=True):
    """`graph`: nodes, edges and policies, the common form of every front end. Of a document that was just
    sent: `problems`, its warnings; `current`, whether new runs start on it; `stored`, false after a dry
    run."""

    name: str
    version: str
    label: str
    created_at: str
    graph: dict[str, Any]
    current: bool | None = None
    stored: bool = True
    problems: list[FlowProblem] = []


class FlowLayout(Model, kw_only=True):
    """How a document is drawn: `nodes` by id, `edges` by id or `source:port->target`."""

    nodes: dict[str, NodeLayout] = {}
    edges: dict[str, EdgeLayout] = {}
    label: str = ""
    notes: list[dict[str, Any]] = []
    groups: list[dict[str, Any]] = []
    ui: Any = None


class FlowMismatch(Model, kw_only=True):
    node: str
    why: str
    fix: str
    soft: bool


class FlowPartDiff(Model, kw_only=True):
    """A node or an edge; `before` and `after`: the whole of it, without layout."""

    id: str
    change: str
    before: dict[str, Any] | None
    after: dict[str, Any] | None
    changes: list[FlowChange]


class FlowProblem(Model, kw_only=True):
    """Of a document also its place: `path` is a JSON Pointer, `field` the same for people, `line` and
    `column` count from 1."""

    rule: str
    severity: str
    message: str
    node: str | None = None
    edge: str | None = None
    fix: str | None = None
    path: str | None = None
    field: str | None = None
    line: int | None = None
    column: int | None = None


class FlowStatistics(Model, kw_only=True):
    """Of the latest `runs` runs. `nodes`: in the order in which they were first visited. `failures`: the
    most frequent first."""

    flow: str
    runs: int
    nodes: list[NodeStatistics]
    failures: list[Failure]


class FlowValidation(Model, kw_only=True):
    """`valid`: no problem is an error. `version`: the fingerprint that it would have. `ports`: where edges
    may leave each node of a document."""

    valid: bool
    name: str
    version: str
    problems: list[FlowProblem]
    ports: dict[str, list[str]] = {}


class FlowVersion(Model, kw_only=True):
    """`loaded`: this server has its code. `workers`: number of live workers that have it. `current`: new
    runs start on it, if they name no version. `document`: it was deployed as a document."""

    version: str
    label: str
    created_at: str
    nodes: int
    loaded: bool
    workers: int
    current: bool = False
    document: bool = False


class FoldedVisits(Model, kw_only=True):
    """Visits inside a visit. `within`: names them for another page. `items`: of a map, or branches."""

    within: str
    visits: int = 0
    items: int = 0
    done: int = 0
    failed: int = 0
    open: int = 0


class Graph(Model, kw_only=True):
    """`flat`: nodes inside others are named without their path, as stages of a pipeline are."""

    version: str
    flat: bool
    picture: PlacedPicture


class GraphCheckpoint(Model, kw_only=True):
    """A run at a node boundary. `timestamp`: milliseconds since 1970. `visitedNodes`: completed nodes in
    order; `skippedNodes`: bypassed by routing; `pendingEdges`: taken, the target not started."""

    id: str
    graphId: str
    runId: str
    nodeId: str
    timestamp: int
    state: GraphState
    nodeResults: dict[str, GraphNodeResult]
    visitedNodes: list[str]
    pendingEdges: list[str]
    skippedNodes: list[str] = []
    memorySnapshot: GraphMemory | None = None


class GraphCheckpointMetadata(Model, kw_only=True):
    """Without its state. `stateSize`: the bytes that it added to the store."""

    id: str
    runId: str
    graphId: str
    nodeId: str
    timestamp: int
    stateSize: int
    hasMemorySnapshot: bool


class GraphMemory(Model, kw_only=True):
    """`pendingWrites`: those that were not committed yet."""

    reads: list[GraphMemoryRead]
    pendingWrites: list[GraphMemoryWrite]


class GraphMemoryRead(Model, kw_only=True):
    traceId: str
    content: str
    strength: float


class GraphMemoryWrite(Model, kw_only=True):
    type: str
    content: str
    scope: str


class GraphNodeResult(Model, kw_only=True):
    effectClass: str
    output: Any
    durationMs: float


class GraphRun(Model, kw_only=True):
    runId: str


class GraphState(Model, kw_only=True):
    """The partitions of the state. Values that are declared secret are hidden."""

    input: Any
    scratch: Any
    artifacts: Any
    diagnostics: dict[str, Any]


class Hold(Model, kw_only=True):
    """A hold. `assignee`: as the flow names it; `assignee_resolved`: the person or group. `title`, `why`
    and `due` are texts; `decided`: the values of its decision; `version` is its ETag. `comments`: how
    many there are, with questions and replies; in lists only. `snoozed_until`: by you; in the list of
    snoozed holds only. `shadow`: what a judge answered before the question was shown, for one hold
    only."""

    id: str
    block_index: int
    instance_key: str | None
    prompt: str
    options: list[Option] | None
    assignee_type: str
    assignee_resolved: Assignee
    context: Any
    schema: Any
    priority: str
    tags: list[str]
    status: str
    expires_at: str | None
    expiry_action: str | None
    escalation_target: str | None
    notification_sent: bool
    reminder_count: int
    reminder_interval_m: int | None
    resolution: dict[str, Any] | None
    resolved_by: str | None
    resolved_at: str | None
    created_at: str
    updated_at: str
    version: int
    assignment_epoch: int
    last_notified_at: str | None
    claimed_by: str | None
    claim_until: str | None
    resumed_at: str | None
    request_hash: str
    escalation_count: int
    original_timeout_s: float | None
    cancelled_by: str | None
    cancelled_at: str | None
    cancel_reason: str | None
    placed_by: str | None
    placed_decision: str | None
    placed_until: str | None
    paused_at: str | None
    started_by: str | None
    terms: dict[str, Any]
    title: str = ""
    why: str = ""
    due: str = ""
    decided: list[DecidedValue] = []
    idempotent_replay: bool | None = None
    run: str
    flow: str
    node: str
    tenant: str
    deployment: str | None
    type: str
    assignee: str | None
    message_id: str | None
    comments: int | None = None
    snoozed_until: str | None = None
    shadow: Shadow | None = None


class HoldConversation(Model, kw_only=True):
    """`turn`: the turn in which the question was asked. `left_out`: older messages that are not listed. A
    hold that no agent asked has no messages."""

    hold: str
    agent: str = ""
    turn: int = 0
    messages: list[ConversationMessage] = []
    left_out: int = 0


class HoldMetrics(Model, kw_only=True):
    """Rates are between 0 and 1; None without data. Breakpoints do not count."""

    holds: int
    pending_by_queue: dict[str, int]
    pending_by_priority: dict[str, int]
    pending_by_age: dict[str, int]
    time_to_view: Spread
    time_to_claim: Spread
    time_to_decision: Spread
    resume_lag: Spread
    breach_rate: float | None
    reminder_rate: float | None
    escalation_rate: float | None
    expiry_rate: float | None
    auto_rate: float | None
    late_rate: float | None
    conflict_rate: float | None
    notifier_failures: int


HoldOrder = Literal["inbox", "newest", "oldest"]


class HoldPreview(Model, kw_only=True):
    """`record`: the record of the run from which it was made."""

    hold: str
    run: str
    record: int
    options: list[OptionPreview]


class HoldSetting(Model, kw_only=True):
    """The text of a calendar or policy."""

    name: str
    rules: Any
    version: int


HoldStatus = Literal["cancelled", "expired", "pending", "resolved"]


HoldView = Literal[
    "all", "asked", "breakpoints", "done", "groups", "mine", "snoozed", "unassigned", "unrouted", "watching"
]


class HoldViewer(Model, kw_only=True):
    person: str
    since: str | None
    until: str | None
    editing: bool


class InputTaken(Model, kw_only=True):
    """The question that was answered, and how."""

    run_id: str
    checkpoint_id: str
    request_id: str
    status: str
    decision: Any = None
    resolved_by: str | None = None
    resolved_at: str | None = None


class Instants(Model, kw_only=True):
    items: list[str]


class KnownHead(Model, kw_only=True):
    """An earlier head: it must be part of the chain."""

    seq: int
    hash: str


class Lane(Model, kw_only=True):
    """`limited`: ready runs that wait for a limit."""

    lane: str
    ready: int
    running: int
    limited: int
    oldest_seconds: float


class Lease(Model, kw_only=True):
    """A run that a process has now. `until`: another worker may take it over from then on, unless its
    process renews the lease. `term`: how often the run was claimed. `expired`: it was not renewed."""

    run: str
    flow: str
    version: str
    tenant: str
    status: str
    worker: str
    term: int
    until: str | None
    expired: bool
    recoveries: int


class Limit(Model, kw_only=True):
    """`fixed`: an operator set it; else the flow declares it. `items:KEY` is a limit that items of maps
    share (`limit_key=`): `running` and `waiting` count items, `holders` and `waiters` have the run of
    each, in the order in which they got, or get, their places."""

    name: str
    concurrency: int | None
    rate: str | None
    fixed: bool
    running: int
    waiting: int
    holders: list[str]
    waiters: list[str]


class Link(Model, kw_only=True):
    """`way`: what the link allows: decide, login (sign in first) or view. `sent_to`: the addresses to
    which it is sent. Only for a link of your own: `token`, the part of the link after `#`, and `path`,
    below the server's address."""

    way: str
    sent_to: list[str] = []
    token: str | None = None
    path: str | None = None


class MachineWait(Model, kw_only=True):
    """What a run waits for that no person answers: an event with this name and key, a callback of this
    name, the end of a child run, or a message of a queue. `until`: then the wait is over; a heartbeat
    of a callback makes it later."""

    event: str | None = None
    callback: str | None = None
    key: str | None = None
    run: str | None = None
    queue: str | None = None
    until: str | None = None


class MailTaken(Model, kw_only=True):
    """`outcome`: resolved, voted, unclear (nothing was decided, and the sender got the reason), refused or
    ignored (nothing was decided, and no one was notified), or duplicate (it came before)."""

    outcome: str
    why: str = ""
    checkpoint_id: str | None = None


class Mark(Model, kw_only=True):
    """A record that readers look for. `kind`: failed, decided or resumed."""

    kind: str
    seq: int
    at: str
    node: str
    worker: str


class Message(Model, kw_only=True):
    """`attempts`: claims that ended without completion. `claim_token`: only for the worker that claimed
    it."""

    id: str
    tenant: str
    scope: str
    queue: str
    type: str
    correlation_id: str | None
    priority: str
    group_key: str | None
    payload: Any
    state: str
    attempts: int
    max_attempts: int
    claimed_by: str | None
    claim_token: str | None
    claim_until: str | None
    result: Any
    completed_by: str | None
    run: str | None
    node: str | None
    hold: str | None
    error: str | None
    visible_at: str
    expires_at: str | None
    created_at: str
    updated_at: str
    ended_at: str | None


class Metric(Model, kw_only=True):
    """`read_since`: older holds or runs exist and were not read, so that earlier points are too low."""

    name: str
    unit: str
    step_seconds: float
    columns: list[str]
    points: list[MetricPoint]
    read_since: str | None = None


class MetricPoint(Model, kw_only=True):
    """`at`: the begin of the step. `values`: one for each column; null: nothing to measure."""

    at: str
    values: list[float | None]


class NodeBox(Model, kw_only=True):
    """`x`, `y`: its upper left corner, from that of the node around it."""

    x: float
    y: float
    width: float
    height: float


class NodeLayout(Model, kw_only=True):
    label: str = ""
    position: dict[str, Any] | None = None
    ui: Any = None


class NodeState(Model, kw_only=True):
    """The last execution of a node. `status`: success, partial_success, fail, skip, cancelled or unknown."""

    status: str
    output_data: Any = None
    effect: str = ""
    visit: int = 0
    attempt: int = 0
    seq: int | None = None
    ended_at: str | None = None
    duration_ms: float = 0.0
    tokens: int = 0
    cost: float = 0.0
    error: dict[str, Any] | None = None


class NodeStatistics(Model, kw_only=True):
    """`failed_runs`, `retried_runs`: newest first. `p50_ms`, `p95_ms`: from the start of a visit to its
    end, with waits. `p50_run`, `p95_run`: a run with a visit that took so long. `waiting`: visits that
    wait now for a person, a time or a retry; `waited_p50_ms`: half of those that waited had no more."""

    node: str
    visits: int
    failed: int
    retries: int
    failed_runs: list[str]
    p50_ms: float | None
    p95_ms: float | None
    retried_runs: list[str] = []
    p50_run: str = ""
    p95_run: str = ""
    waiting: int = 0
    waiting_runs: list[str] = []
    waited_p50_ms: float | None = None
    waited_run: str = ""


class NodeTotals(Model, kw_only=True):
    state: str
    visits: int
    open: int
    done: int
    failed: int
    retries: int
    work_ms: float
    tokens: int
    cost: float


class Note(Model, kw_only=True):
    """A comment, a question that was asked back, or a reply."""

    id: str
    kind: str
    by: str
    at: str | None
    text: str = ""
    to: str | None = None
    question: str | None = None
    open: bool | None = None


class Notice(Model, kw_only=True):
    """`due_at`: of a notification that waits, the time of its next attempt."""

    id: int
    at: str | None
    topic: str
    hold_id: str | None
    attempts: int
    error: str | None
    state: str
    due_at: str | None


class NoticeChoices(Model, kw_only=True):
    """`reminders`: of holds that still wait; `outcomes`: outcomes of holds that they were notified about."""

    reminders: bool = True
    outcomes: bool = True


class OpenCallback(Model, kw_only=True):
    """`url`: to POST to; it, or `token`, is all that the sender needs."""

    name: str
    status: str
    expires_at: str | None
    hold: str
    node: str
    token: str
    url: str


class OpenCallbacks(Model, kw_only=True):
    items: list[OpenCallback]


class Option(Model, kw_only=True):
    """`text`: the label for people; a label that is only the id as words. The documents' paths have none."""

    id: str
    label: str
    text: str | None = None
    variant: str = "secondary"
    default: bool | None = None
    requires_comment: bool | None = None


class OptionPreview(Model, kw_only=True):
    option: str
    label: str
    entries: list[PreviewEntry]


class Pending(Model, kw_only=True):
    """A run that waits for a person, and its question."""

    run: str
    flow: str
    thread: str | None
    hold_id: str
    node: str
    prompt: str
    assignee: str | None
    created_at: str


class PendingContext(Model, kw_only=True):
    """A question that was open then."""

    request_id: str
    node_id: str
    prompt: str
    timestamp: str
    type: str = ""
    options: Any = None
    assignee: str | None = None
    expires_at: str | None = None


class Person(Model, kw_only=True):
    id: str
    email: str
    name: str
    active: bool
    away: Away | None
    language: str
    zone: str


class Pipeline(Model, kw_only=True):
    """`status` is the run's; `outcome` is success, fail or cancelled once it has ended. `current_node` is
    the last completed one. `completed_nodes` are in order: one that was visited twice is listed twice.
    `missing`: what it needs of a worker and no live one has."""

    id: str
    name: str
    goal: str
    status: str
    outcome: str | None
    current_node: str
    completed_nodes: list[str]
    node_outcomes: dict[str, str]
    node_retries: dict[str, int]
    failure_reason: str | None
    questions: list[str]
    created_at: str | None
    updated_at: str | None
    ended_at: str | None
    wakes_at: str | None = None
    missing: list[str] = []
    diagnostics: list[Diagnostic] = []


class PlacedEdge(Model, kw_only=True):
    """`path`: its curve as in SVG, from `x`, `y`; `head_x`, `head_y`: the point of its arrow. `id`: empty
    for the edge from the start. `label_x`, `label_y`: the middle of the label."""

    id: str
    source: str
    target: str
    label: str
    look: str
    path: str
    x: float
    y: float
    head_x: float
    head_y: float
    label_x: float = 0
    label_y: float = 0


class PlacedNode(Model, kw_only=True):
    """`id`: its path, as `child/pay`. `x`, `y`: its left upper corner. `inside`: `open` if its inside is
    drawn within it, `closed` if it could be, else empty."""

    id: str
    label: str
    shape: str
    x: float
    y: float
    width: float
    height: float
    detail: str = ""
    inside: str = ""


class PlacedPicture(Model, kw_only=True):
    """Nodes around others come before those inside them."""

    width: float
    height: float
    nodes: list[PlacedNode]
    edges: list[PlacedEdge]


class Postmortem(Model, kw_only=True):
    """The text of a report. `format`: md or html."""

    run: str
    format: str
    text: str


class Preferences(Model, kw_only=True):
    """None: what the browser says. `shortcuts`: whether single letters are keys."""

    language: str | None = None
    time_zone: str | None = None
    theme: str = "system"
    shortcuts: bool = True
    notifications: NoticeChoices | None = None


class PreviewEntry(Model, kw_only=True):
    """`kind`: `step` (ran, without outside effects), `effect` (would happen; what follows is unknown),
    `question`, `sleep`, `failure`, `end` or `unknown`. `text`: the same as a sentence."""

    kind: str
    text: str
    node: str = ""
    effect: str = ""
    step: str = ""
    key: str = ""
    then: list[str] = []
    assignee: str | None = None
    options: list[str] = []
    until: str | None = None
    status: str = ""


class Question(Model, kw_only=True):
    """`id` is the hold's: it can be decided as one too. `type`: yes_no, multiple_choice, freeform or
    confirmation; `approval` and others for questions that are not gates."""

    id: str
    stage: str
    text: str
    type: str
    options: list[QuestionOption]
    default: str | None
    timeout_seconds: float | None
    created_at: str | None
    expires_at: str | None
    assignee: str | None


class QuestionList(Model, kw_only=True):
    items: list[Question]


class QuestionOption(Model, kw_only=True):
    """`key`: its accelerator; `id`: its id in the hold."""

    id: str
    key: str
    label: str
    to: str | None = None


class Queue(Model, kw_only=True):
    """`delayed`: of the ready messages, those that cannot be claimed yet. `oldest_seconds`: how long the
    oldest ready message could have been claimed."""

    tenant: str
    scope: str
    queue: str
    ready: int
    delayed: int
    claimed: int
    dead: int
    oldest_seconds: float


class Record(Model, kw_only=True):
    """A record of the journal by its columns. `kind`: created, intent, attempt, substep, asked, chunk,
    step, snapshot or end. `name`: of its node, as people read it; empty: it is about the whole run.
    `term`: the claim of the run under which it was written."""

    seq: int
    at: str
    kind: str
    name: str
    visit: int
    attempt: int
    outcome: str
    term: int


class RecordPage(Model, kw_only=True):
    """Records in order. `horizon`: the first that is not pruned; `head`: the last."""

    items: list[Record]
    horizon: int
    head: int


class RepeatedEffect(Model, kw_only=True):
    """An effect outside that may happen again. `guarded`: by a key that the callee recognises, which is
    the same again."""

    node: str
    effect: str
    guarded: bool


class Replayed(Model, kw_only=True):
    """One past decision. `agrees`: whether the automatic outcome is what people decided; None: not
    automatic."""

    hold: str
    flow: str
    node: str
    prompt: str
    decided_by: str
    rule: str | None
    differences: list[Difference] = []
    agrees: bool | None = None


class ReplayedNotice(Model, kw_only=True):
    """`text`: what happens to it, or why nothing does. `sends`: false if it waits again but will not be
    sent, because its hold does not need it any more."""

    id: int
    done: bool
    sends: bool = False
    text: str


class ReplayedNotices(Model, kw_only=True):
    """In a preview `done` is the number of notifications that would wait again."""

    preview: bool
    done: int
    items: list[ReplayedNotice]


Right = Literal[
    "admin:manage",
    "audit:read",
    "flows:read",
    "flows:write",
    "holds:manage",
    "holds:override",
    "holds:read",
    "holds:resolve",
    "holds:view",
    "holds:write",
    "queues:read",
    "queues:work",
    "queues:write",
    "runs:read",
    "runs:write",
    "schedules:read",
    "schedules:write",
]


class Run(Model, kw_only=True):
    """`status`: pending, running, waiting, pending_input, resumable, completed, failed or cancelled.
    `wakes_at`: until when a run with the status waiting sleeps. `waits_for`: the events, callbacks,
    child runs and messages that a run with the status pending_input waits for; no person is asked for
    those. `asks`: it waits for the answer of a person. `answered`: its answer is recorded, and it waits
    for a worker to resume it; people read "queued". `missing`: what it needs of a worker and no live
    one has, such as `backend:model` or `provider:openai`; it waits for such a worker."""

    id: str
    flow: str
    version: str
    status: str
    lane: str
    priority: int
    tenant: str
    created_at: str | None
    updated_at: str | None
    ended_at: str | None = None
    wakes_at: str | None = None
    waits_for: list[MachineWait] = []
    asks: bool = False
    answered: bool = False
    missing: list[str] = []
    thread: str | None = None
    instance_key: str | None = None
    started_by: str | None = None
    deployment: str | None = None
    parent_run: str | None = None
    forked_from: str | None = None
    superseded_by: str | None = None
    error: str | None = None
    head: int = 0
    event_seq: int = 0
    dead: bool = False
    read_only: bool = False


class RunChangePreview(Model, kw_only=True):
    """`head`: the last record when it was made; if the run has moved since, ask again. `record`: the
    record from which the run, or the new run, continues. `run_again`: nodes; `in_doubt`: nodes that had
    begun their effect there, of which a person is asked first whether it took effect; `withdrawn` and
    `asked_again`: questions; `text`: all of it as sentences. `refused_without_consent`: nodes with
    effects outside that a branch repeats because it has to start before a question; it is refused
    without `repeat_effects`."""

    run: str
    action: str
    head: int
    record: int
    version: str
    run_again: list[str]
    in_doubt: list[str] = []
    repeated_effects: list[RepeatedEffect]
    withdrawn: list[str]
    asked_again: list[str]
    text: list[str]
    refused_without_consent: list[str] = []
    way: list[PreviewEntry] = []


class RunCounts(Model, kw_only=True):
    """`by_status`: those with at least one run."""

    count: int
    by_status: dict[str, int]


class RunDetail(Model, kw_only=True):
    """`unstored`: why the run waits although it is `running`: a large value cannot be written to the blob
    store now."""

    id: str
    flow: str
    version: str
    status: str
    lane: str
    priority: int
    tenant: str
    created_at: str | None
    updated_at: str | None
    ended_at: str | None = None
    wakes_at: str | None = None
    waits_for: list[MachineWait] = []
    asks: bool = False
    answered: bool = False
    missing: list[str] = []
    thread: str | None = None
    instance_key: str | None = None
    started_by: str | None = None
    deployment: str | None = None
    parent_run: str | None = None
    forked_from: str | None = None
    superseded_by: str | None = None
    error: str | None = None
    head: int = 0
    event_seq: int = 0
    dead: bool = False
    read_only: bool = False
    metadata: RunMetadata
    unstored: str | None = None


class RunFit(Model, kw_only=True):
    run: str
    status: str
    version: str
    fits: bool
    misfits: list[FlowMismatch]
    renamed: dict[str, str]


class RunMetadata(Model, kw_only=True):
    """`checkpoint_id`: of its newest open question, if it waits for a person."""

    checkpoint_id: str | None = None
    checkpoint_ids: list[str] = []


class RunResult(Model, kw_only=True):
    """The result or the current state of a run. Values that are declared secret are hidden."""

    id: str
    status: str
    state: dict[str, Any]
    artifacts: dict[str, Any]
    error: str | None = None
    open_holds: list[str] = []
    wakes_at: str | None = None


RunStatus = Literal[
    "cancelled", "completed", "failed", "pending", "pending_input", "resumable", "running", "waiting"
]


class SavedDocument(Model, kw_only=True):
    """A document that people work on. `saved_by`, `saved_at`: of its draft; None without one. `version`:
    the version that new runs start on; None: it was never deployed."""

    name: str
    format: str
    saved_by: str | None
    saved_at: str | None
    version: str | None


class SavedView(Model, kw_only=True):
    """`count`: its number of holds that you may see, if requested; counting stops at 10,000."""

    id: str
    title: str
    owner: str
    shared: bool
    filters: Filters
    order: str | None
    url: str
    version: int
    count: int | None = None


class Schedule(Model, kw_only=True):
    """`next_at`: its next start, with its jitter; null if it is paused or has ended."""

    name: str
    flow: str
    cron: str | None
    every: str | None
    at: str | None
    zone: str
    anchor: str | None
    start: str | None
    end: str | None
    jitter: str | None
    missed: str
    grace: str
    overlap: str
    input: Any
    stamp: str | None
    options: dict[str, Any]
    paused: bool
    over: bool
    reason: str
    by: str
    declared: bool
    next_at: str | None
    last_at: str | None
    last_run: str | None
    passed: int
    trouble: str
    trouble_at: str | None
    revision: int
    updated_at: str | None


class ScheduleFill(Model, kw_only=True):
    """The instants of the range. Those that have a run are left as they are."""

    items: list[str]


class ScheduleTrigger(Model, kw_only=True):
    """The run exists once a worker that serves the flow has started it."""

    run: str


class SentEvent(Model, kw_only=True):
    """`delivered`: a run has it; otherwise it is kept until `expires_at`."""

    id: str
    name: str
    key: str | None
    run: str | None
    delivered: bool
    expires_at: str | None


class Session(Model, kw_only=True):
    """The caller. `csrf`: required for each change with this session; none for tokens. `now`: the server's
    clock, which deadlines follow; `release`: the version that the server runs; `web_release`: the build
    of its web app, empty without one. `tenants`: those between which the session can switch.
    `directory`: where the server looks for people and groups: in the store, elsewhere, or nowhere."""

    subject: str
    tenant: str
    rights: list[str]
    groups: list[str]
    roles: list[str]
    method: str
    now: str
    release: str
    web_release: str = ""
    tenants: list[str] = []
    directory: str = "none"
    csrf: str | None = None


class Shadow(Model, kw_only=True):
    """What a judge answered before people saw the question. Until they have decided only `judge` and
    `sealed`, the SHA-256 digest of the answer, are there. `agrees`: with their decision; `intact`: it
    is the answer that was sealed; `error`: the judge gave none."""

    judge: str
    sealed: str
    decision: str | None = None
    confidence: float | None = None
    reasoning: str = ""
    error: str = ""
    at: str | None = None
    agrees: bool | None = None
    intact: bool = True
    digests: dict[str, str] = {}


class Simulation(Model, kw_only=True):
    """`differing`: only the holds with another result, oldest first."""

    looked_at: int
    differing: list[Replayed]
    rules: dict[str, int]
    automatic: int
    agreeing: int
    overturned: int


class Skill(Model, kw_only=True):
    name: str
    version: str
    description: str
    instructions: str
    tools: list[SkillTool]
    data: dict[str, Any]
    digest: str
    published_at: str | None
    published_by: str
    yanked_at: str | None
    yanked_reason: str


class SkillTool(Model, kw_only=True):
    """A tool that a skill provides, by its registered name. A skill never contains code.

    `description` replaces the tool's description for the model; `settings` are for the node that uses
    it."""

    name: str
    description: str = ""
    settings: dict[str, Any] = {}


class Spread(Model, kw_only=True):
    """Percentiles in seconds, and the number of values."""

    count: int
    p50: float | None = None
    p95: float | None = None


class StateChange(Model, kw_only=True):
    """One operation on the state. `op`: set, delete or a reducer's name, whose operand is `after`."""

    path: str
    op: str
    before: Any = None
    after: Any = None


class Status(Model, kw_only=True):
    """The state of the server and its store. `weak`: settings that weaken durability, each with what can
    be lost. `problems`: damage in the store."""

    release: str
    store: str
    schema: int
    size: int
    problems: list[str]
    drift: list[str]
    weak: list[str]
    unfinished_migrations: list[int]
    blobs: int
    missing_blobs: int
    lapsed_runs: int
    workers: int
    flows: dict[str, str]


class SteerTaken(Model, kw_only=True):
    """The message waits until the agent has made its tool calls."""

    id: str
    run: str
    text: str


class Step(Model, kw_only=True):
    """One visit with everything that is recorded about it. `input`: the state that it saw. `traceback`: of
    its error, the frames of the flow first."""

    node: str
    scope: str
    visit: int
    state: str
    outcome: str
    started_at: str
    ended_at: str | None
    attempts: int
    work_ms: float
    error: str
    waits: list[Wait]
    steps: int
    tokens: int
    cost: float
    said: str
    progress: float | None
    run: str
    first: int = -1
    seq: int = -1
    retries: list[Attempt] = []
    inside: FoldedVisits | None = None
    name: str = ""
    effect: str
    input: Any
    output: Any
    error_detail: dict[str, str] | None
    traceback: str
    spans: list[AttemptSpan]
    emitted: list[Emitted]
    calls: list[Call]
    changes: list[StateChange]
    edges: list[str]


class Thread(Model, kw_only=True):
    """`open_runs`: those that have not ended; `pending_input_runs`: those that wait for a person."""

    id: str
    runs: int
    open_runs: int
    pending_input_runs: int
    created_at: str
    last_run_at: str
    updated_at: str


class Timeline(Model, kw_only=True):
    """Visits in the order of their start. `next`: the cursor of the page with earlier ones; `left_out`:
    their number. `marks`: failures, decisions and resumes. `horizon`: the first record that is not
    pruned. `damage`: why the run's journal cannot be read, if so. `first_worker`: the worker that
    started the run, as long as it has the run or if it died; a run that it left otherwise does not name
    it."""

    run: str
    items: list[Visit]
    next: str | None
    marks: list[Mark]
    horizon: int
    head: int
    nodes: dict[str, NodeTotals]
    edges: dict[str, int]
    left_out: int
    damage: str = ""
    first_worker: str = ""


class Token(Model, kw_only=True):
    """`token`: its text, only in the answer that created it."""

    id: str
    subject: str
    tenant: str
    roles: list[str]
    rights: list[str]
    groups: list[str]
    status: str
    note: str
    created_at: str
    created_by: str
    expires_at: str | None = None
    last_used_at: str | None = None
    token: str | None = None


class UnservedRuns(Model, kw_only=True):
    """Ready runs that no live worker takes: none serves the lane, or none has the code of the version."""

    lane: str
    flow: str
    version: str
    ready: int
    oldest_seconds: float


class UnservedSchedules(Model, kw_only=True):
    """Schedules that will fire for a flow that no live worker serves."""

    flow: str
    schedules: int


class Visit(Model, kw_only=True):
    """One visit of one node. `name`: as people read it. `first`: the record with which it began. `seq`:
    the record that settled it, or the latest about it. `run`: whose records these are, for a fork its
    source. `retries`: its attempts after the first. `inside`: visits of its items, if they are folded."""

    node: str
    scope: str
    visit: int
    state: str
    outcome: str
    started_at: str
    ended_at: str | None
    attempts: int
    work_ms: float
    error: str
    waits: list[Wait]
    steps: int
    tokens: int
    cost: float
    said: str
    progress: float | None
    run: str
    first: int = -1
    seq: int = -1
    retries: list[Attempt] = []
    inside: FoldedVisits | None = None
    name: str = ""


class Wait(Model, kw_only=True):
    """`kind`: person, time, retry or failed (its run had failed, until it was retried). Open while `until`
    is null. `breakpoint`: a person continues the run there."""

    kind: str
    since: str
    until: str | None = None
    wake_at: str | None = None
    about: str = ""
    hold: str = ""
    by: str = ""
    decision: Any = None
    breakpoint: bool = False


class WebhookTaken(Model, kw_only=True):
    """`outcome`: resolved, voted (more votes are needed), already_decided, late (the hold was cancelled or
    expired), kept (the hold does not exist yet), duplicate or ignored."""

    outcome: str
    checkpoint_id: str | None = None
    status: str | None = None


class Worker(Model, kw_only=True):
    """`blocked_entities`, and `unstored`: runs that wait because a large value cannot be written to the
    blob store, with the reason (at most 100); both as of its last heartbeat. Such a run is `running`."""

    name: str
    host: str
    pid: int
    release: str
    alive: bool
    started_at: str | None
    seen_at: str | None
    lanes: list[str] | None
    flows: list[str]
    versions: dict[str, str]
    concurrency: int
    busy: int
    in_memory: int
    draining: bool
    skew_seconds: float
    records: int
    ended: int
    records_per_second: float
    ended_per_second: float
    blocked_entities: list[BlockedEntity] = []
    unstored: dict[str, str] = {}
