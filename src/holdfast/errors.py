"""Every error that a caller can meet, as a map: what happened, to what, and what to do.

HoldfastError
├── InputError                  the caller's data or flow is wrong; mend it and call again
│   ├── FlowInvalidError            the flow does not validate; lists every problem
│   │   ├── PipelineSyntaxError         a text that is no pipeline; lists every fault with its place
│   │   └── PipelineInvalidError        a pipeline that cannot run; lists every error with its place
│   ├── ValueNotStorableError       a value that could not be read back exactly
│   ├── ValueTooLargeError          over the limit of one value or record
│   ├── StateError                  an update that does not fit the state's declared type
│   ├── StateMutationError          a handler changed the state in place
│   ├── ExpressionError             a condition, template or duration that cannot be read
│   ├── AnswerInvalidError          an answer that does not fit the hold
│   │   └── FormInvalidError        a field that was not filled in as its form wants it
│   ├── KeyReusedError              an idempotency key that stands for another request
│   ├── PolicyInvalidError          rules that cannot be read; lists every problem
│   ├── EgressError                 an address that messages may not go to
│   └── SettingsError               a store address or setting that means nothing
├── ForbiddenError              this actor may not do that here
│   ├── NotAssignedError            the hold waits for somebody else
│   ├── ExcludedError               separation of duties: not by this person
│   ├── VetoedError                 a guardrail does not let this approval pass
│   └── LinkInvalidError            a link that is forged, too old, used up or void
├── NotFoundError               no such thing (or not in this tenant)
│   ├── RunNotFoundError            no run of that id
│   ├── CheckpointNotFoundError     no such record, or it was pruned
│   ├── FeedTrimmedError            what a reader of the feed would go on with is gone
│   ├── HoldNotFoundError           no question of that id
│   ├── SkillNotFoundError          no such skill or version
│   ├── DeploymentNotFoundError     no such deployment
│   ├── ScheduleNotFoundError       no such schedule
│   └── FlowNotFoundError           no flow of that name is loaded here
├── ConflictError               somebody else was first, or the thing has moved on
│   ├── HoldDecidedError            names the winner
│   ├── HoldChangedError            it is not the version that the caller has seen
│   ├── ContentChangedError         what was shown is not what the hold asks
│   ├── DeadlinePassedError         decided after the deadline, and this hold takes no late decisions
│   ├── HoldReassignedError         it went to somebody else meanwhile
│   ├── HoldClaimedError            somebody else works on it
│   ├── AlreadyVotedError           one person, one vote
│   ├── TooManyPendingError         as many questions of this kind are open as may be
│   ├── RequestExistsError          a question of that id is open already
│   ├── DocumentChangedError        somebody else wrote it meanwhile
│   ├── SkillPublishedError         that version is published already, with other content
│   ├── RunEndedError               it is over; nothing more can be asked of it
│   ├── RunExistsError              the id or key names a run of another flow
│   ├── RunBusyError                another worker has the run
│   │   └── LimitReachedError           it is queued: a limit of its flow is reached
│   ├── RunReadOnlyError            imported history: it can be read and forked, not advanced
│   ├── OlderWorkerError            code of an older version is at work on the store
│   ├── HistoryLostError            the store lost part of the run's history; somebody has to accept that
│   ├── VersionMismatchError        the graph differs from the one the run was started on
│   ├── WorkerNameTakenError        another live worker has that name
│   └── LeaseLostError              another worker took the run over; stop quietly
├── RateLimitedError            too much at once by one actor or link, or on one hold; try again later
├── RunError                    the run itself went wrong; recorded on the run
│   ├── NodeFailedError             what a node's own code raised
│   ├── StepFailedError             a recorded sub-step of a node failed; raised again on each re-entry
│   ├── HoldExpiredError            nobody answered in time
│   ├── HoldCancelledError          the question was withdrawn, and its flow wants to know
│   ├── SkillChangedError           a skill is not what the run was pinned to
│   ├── NodeTimeoutError            a node took longer than its timeout
│   ├── GuardrailError              a guardrail blocked the run
│   ├── RoutingError                a router named a target that is not there
│   ├── StallError                  work remains but nothing can start
│   ├── LoopLimitError              a loop went round more often than its cap
│   ├── JoinUnsatisfiedError        too few branches arrived at a join
│   ├── OutcomeUnknownError         an effect may or may not have happened
│   ├── ReplayMismatchError         sub-steps called in another order than recorded
│   ├── ScriptError                 ctx.step or ctx.ask where the node's class forbids it
│   ├── ModelError                  a model gave no usable answer
│   │   ├── ModelRefusedError           the endpoint refuses the request: its key, its address, its content
│   │   ├── ModelUnavailableError       it was busy, broken or out of reach, over all attempts
│   │   └── ModelReplyError             what it answered cannot be understood
│   ├── TurnLimitError              an agent took more turns than it may
│   ├── BudgetError                 an agent's budget is spent, and it has no answer yet
│   └── RunCancelledError           somebody asked it to stop
├── StoreError                  the store could not do it
│   ├── StoreBusyError              locked by somebody else; try again
│   ├── StoreFullError              no room on the disk
│   ├── StoreUnavailableError       it cannot be opened, read or written; it is closed
│   ├── DirectoryUnavailableError   people and groups cannot be asked for; until then nobody is a member
│   ├── NotAStoreError              the file is not a Holdfast database
│   ├── SchemaTooNewError           written by a newer version
│   ├── StoreMovedError             it was moved, or is about to be: this one can only be read
│   ├── StoreFillingError           a move into it is not done yet
│   ├── CheckpointCorruptError      a record does not match its digest
│   ├── BlobMissingError            a blob that a record names is gone or damaged
│   └── KeyMissingError             what it takes to read is encrypted under a key that is not here
└── NotDone                     raised by a handler: the effect certainly did not happen
"""

from __future__ import annotations

from typing import Any, ClassVar


class HoldfastError(Exception):
    """The root. `code` is stable, `status` is the HTTP status, `retryable` says whether to call again."""

    code: ClassVar[str] = "error"
    status: ClassVar[int] = 500
    retryable: ClassVar[bool] = False

    def __init__(self, message: str, *, hint: str | None = None, **facts: object) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.facts = facts

    def __str__(self) -> str:
        gap = "\n" if "\n" in self.message else " "  # after a list, advice is no part of its last line
        return f"{self.message}{gap}{self.hint}" if self.hint else self.message


class InputError(HoldfastError):
    code = "invalid_input"
    status = 422


class FlowInvalidError(InputError):
    code = "flow_invalid"


class PipelineSyntaxError(FlowInvalidError):
    """`facts["diagnostics"]` has everything that was found, warnings too."""

    code = "pipeline_syntax"


class PipelineInvalidError(FlowInvalidError):
    """`facts["diagnostics"]` has everything that was found, warnings too."""

    code = "pipeline_invalid"


class ValueNotStorableError(InputError):
    code = "value_not_storable"


class ValueTooLargeError(InputError):
    code = "value_too_large"
    status = 413


class StateError(InputError):
    code = "state_mismatch"


class StateMutationError(InputError):
    code = "state_mutated"


class ExpressionError(InputError):
    code = "expression_invalid"


class AnswerInvalidError(InputError):
    code = "answer_invalid"


class FormInvalidError(AnswerInvalidError):
    code = "form_invalid"


class KeyReusedError(InputError):
    code = "idempotency_key_reused"


class PolicyInvalidError(InputError):
    code = "policy_invalid"


class EgressError(InputError):
    code = "egress_refused"


class SettingsError(InputError):
    code = "settings_invalid"


class ForbiddenError(HoldfastError):
    code = "forbidden"
    status = 403


class NotAssignedError(ForbiddenError):
    code = "not_assigned"


class ExcludedError(ForbiddenError):
    code = "excluded"


class VetoedError(ForbiddenError):
    code = "vetoed"


class LinkInvalidError(ForbiddenError):
    code = "link_invalid"


class NotFoundError(HoldfastError):
    code = "not_found"
    status = 404


class RunNotFoundError(NotFoundError):
    code = "run_not_found"


class CheckpointNotFoundError(NotFoundError):
    code = "checkpoint_not_found"


class FeedTrimmedError(NotFoundError):
    code = "feed_trimmed"
    status = 410


class HoldNotFoundError(NotFoundError):
    code = "hold_not_found"


class SkillNotFoundError(NotFoundError):
    code = "skill_not_found"


class DeploymentNotFoundError(NotFoundError):
    code = "deployment_not_found"


class ScheduleNotFoundError(NotFoundError):
    code = "schedule_not_found"


class FlowNotFoundError(NotFoundError):
    code = "flow_not_found"


class ConflictError(HoldfastError):
    code = "conflict"
    status = 409


class HoldDecidedError(ConflictError):
    code = "hold_decided"


class HoldChangedError(ConflictError):
    code = "version_stale"
    status = 412


class ContentChangedError(ConflictError):
    code = "content_changed"


class DeadlinePassedError(ConflictError):
    code = "deadline_passed"


class HoldReassignedError(ConflictError):
    code = "reassigned"


class HoldClaimedError(ConflictError):
    code = "claimed"


class AlreadyVotedError(ConflictError):
    code = "already_voted"


class TooManyPendingError(ConflictError):
    code = "too_many_pending"


class RequestExistsError(ConflictError):
    code = "request_exists"


class DocumentChangedError(ConflictError):
    code = "document_changed"
    status = 412


class SkillPublishedError(ConflictError):
    code = "skill_published"


class RunEndedError(ConflictError):
    code = "run_ended"


class RunExistsError(ConflictError):
    code = "run_exists"


class RunBusyError(ConflictError):
    code = "run_busy"
    retryable = True


class LimitReachedError(RunBusyError):
    code = "gate_shut"


GateShutError = LimitReachedError  # its name before 0.2


class RunReadOnlyError(ConflictError):
    code = "run_read_only"


class OlderWorkerError(ConflictError):
    code = "older_worker"
    retryable = True


class HistoryLostError(ConflictError):
    code = "history_lost"


class VersionMismatchError(ConflictError):
    code = "version_mismatch"


class WorkerNameTakenError(ConflictError):
    code = "worker_name_taken"


class LeaseLostError(ConflictError):
    code = "lease_lost"


class RateLimitedError(HoldfastError):
    code = "rate_limited"
    status = 429
    retryable = True


class RunError(HoldfastError):
    code = "run_error"


class NodeFailedError(RunError):
    code = "node_failed"


class StepFailedError(RunError):
    """A recorded sub-step failed; raised again on every re-entry. `info` is the error as it was recorded."""

    code = "step_failed"

    def __init__(self, message: str, *, info: Any = None, hint: str | None = None, **facts: object) -> None:
        super().__init__(message, hint=hint, **facts)
        self.info = info


class HoldExpiredError(RunError):
    code = "hold_expired"


class HoldCancelledError(RunError):
    code = "hold_cancelled"


class SkillChangedError(RunError):
    code = "skill_changed"


class NodeTimeoutError(RunError):
    code = "node_timeout"


class GuardrailError(RunError):
    code = "guardrail_violation"


class RoutingError(RunError):
    code = "routing"


class StallError(RunError):
    code = "stall"


class LoopLimitError(RunError):
    code = "loop_limit"


class JoinUnsatisfiedError(RunError):
    code = "join_unsatisfied"


class OutcomeUnknownError(RunError):
    code = "outcome_unknown"


class ReplayMismatchError(RunError):
    code = "replay_mismatch"


class ScriptError(RunError):
    code = "script"


class ModelError(RunError):
    code = "model"
    status = 502


class ModelRefusedError(ModelError):
    code = "model_refused"


class ModelUnavailableError(ModelError):
    code = "model_unavailable"
    status = 503
    retryable = True


class ModelReplyError(ModelError):
    code = "model_reply"


class TurnLimitError(RunError):
    code = "turn_limit"


class BudgetError(RunError):
    code = "budget"


class RunCancelledError(RunError):
    code = "run_cancelled"


class StoreError(HoldfastError):
    code = "store"
    status = 503


class StoreBusyError(StoreError):
    code = "store_busy"
    retryable = True


class StoreFullError(StoreError):
    code = "store_full"
    status = 507
    retryable = True


class StoreUnavailableError(StoreError):
    code = "store_unavailable"
    retryable = True


class DirectoryUnavailableError(StoreError):
    code = "directory_unavailable"
    retryable = True


class NotAStoreError(StoreError):
    code = "not_a_store"


class SchemaTooNewError(StoreError):
    code = "schema_too_new"


class StoreMovedError(StoreError):
    code = "store_moved"
    status = 409


class StoreFillingError(StoreError):
    code = "store_filling"
    retryable = True


class CheckpointCorruptError(StoreError):
    code = "checkpoint_corrupt"
    status = 500


class BlobMissingError(StoreError):
    code = "blob_missing"
    status = 500


class KeyMissingError(StoreError):
    """Nothing is lost: with the key (`facts["key"]` names it) all is as it was."""

    code = "key_missing"


class NotDone(HoldfastError):
    """Raise it from a handler whose effect certainly did not happen: it may be tried again (D-15)."""

    code = "not_done"
