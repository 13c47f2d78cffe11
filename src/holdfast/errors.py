"""Every error that a caller can get. A message says what happened, to what, and what to do.

HoldfastError
├── InputError                  the caller's data or flow is wrong; correct it and call again
│   ├── FlowInvalidError            the flow does not validate; lists every problem
│   │   ├── PipelineSyntaxError         the text is not a pipeline; lists every fault with its line and column
│   │   └── PipelineInvalidError        the pipeline cannot run; lists every error with its line and column
│   ├── ValueNotStorableError       the value could not be read back exactly
│   ├── ValueTooLargeError          larger than one value or record may be
│   ├── StateError                  an update does not fit the state's declared type
│   ├── StateMutationError          a handler changed the state in place
│   ├── ExpressionError             a condition, template or duration cannot be parsed
│   ├── AnswerInvalidError          the answer does not fit the hold
│   │   └── FormInvalidError        a field of the form is missing or has a wrong value
│   ├── KeyReusedError              the idempotency key was used for another request
│   ├── PolicyInvalidError          the policies cannot be parsed; lists every problem
│   ├── EgressError                 messages may not be sent to this address
│   ├── OtherCellError              the cursor of a list is one of another cell
│   └── SettingsError               a store address or setting is unknown or has a wrong value
│       └── EngineError                 the engine that drives runs cannot be used, or cannot do this
├── ForbiddenError              the actor lacks the right to do this
│   ├── NotAssignedError            the hold is assigned to another person or group
│   ├── ExcludedError               separation of duties: this person may not decide it
│   ├── StepUpRequiredError         the hold requires a recent sign-in
│   ├── VetoedError                 a guardrail rejected the approval
│   └── LinkInvalidError            the link is forged, expired, used or void
├── NotFoundError               it does not exist (or not in this tenant)
│   ├── RunNotFoundError            no run has this id
│   ├── CheckpointNotFoundError     no such checkpoint, or it was pruned
│   ├── FeedTrimmedError            the events after the reader's cursor were deleted
│   ├── HoldNotFoundError           no hold has this id
│   ├── SkillNotFoundError          no such skill or version
│   ├── DeploymentNotFoundError     no such deployment
│   ├── ScheduleNotFoundError       no such schedule
│   ├── MessageNotFoundError        the queue has no such message
│   ├── CallbackNotFoundError       no callback has this token
│   ├── NoDocumentError             the flow version was not made from a document
│   ├── TenantNotPlacedError        the directory of tenants has no place for this tenant, or another one
│   └── FlowNotFoundError           no flow of this name is loaded here
├── ConflictError               another caller was first, or the object has changed since it was read
│   ├── FlowNameTakenError          a graph was posted under the name of a flow that has code
│   ├── CodeRequiredError           the graph is stored, but no worker has the code of its nodes
│   ├── EffectsRepeatedError        a branch must start before a question, and would repeat outside effects
│   ├── HoldDecidedError            the hold is decided already; names who decided
│   ├── HoldChangedError            the hold is not at the version that the caller read
│   ├── ContentChangedError         the content that was shown differs from what the hold asks now
│   ├── DeadlinePassedError         the deadline has passed, and the hold accepts no late decisions
│   ├── HoldReassignedError         the hold was reassigned in the meantime
│   ├── HoldClaimedError            another person has claimed the hold
│   ├── AlreadyVotedError           one person, one vote
│   ├── TooManyPendingError         the limit of open questions of this kind is reached
│   ├── RequestExistsError          a question with this id is open already
│   ├── DocumentChangedError        the document was changed by another writer in the meantime
│   ├── SkillPublishedError         this version is published already, with different content
│   ├── MessageDiffersError         a message with this id has different content
│   ├── ClaimLostError              the claim on the message has ended or passed to another worker
│   ├── MessageEndedError           the message is in a state that does not allow this
│   ├── CallbackUsedError           the callback was completed already, with another result
│   ├── CallbackExpiredError        the callback was given up before it was completed
│   ├── RunEndedError               the run has ended, so the request does not apply
│   ├── RunStatusError              the run has not ended, but the request does not apply to its status
│   ├── RunExistsError              the id or key belongs to a run of another flow
│   ├── RunBusyError                another worker holds the run's lease
│   │   └── LimitReachedError           the run is queued: a limit of its flow is reached
│   ├── EffectWaitingError          the effect waits for a decision of a person; names the hold
│   │   └── EffectInDoubtError          the effect started, and a person is asked whether it happened
│   ├── RunReadOnlyError            imported history: the run can be read and forked, not advanced
│   ├── ProjectionConflictError     the journal of a run is not what its workflow decided
│   ├── OlderWorkerError            a worker of an older version still uses the store
│   ├── ThreadOwnedError            another invocation has claimed the graph's thread; try again later
│   ├── HistoryLostError            the store lost part of the run's history; an operator must accept that
│   ├── VersionMismatchError        the graph differs from the one that the run was started with
│   │   └── RequirementsMissingError  this process lacks a backend, handler, provider or tool of the run
│   │       └── RunFileMissingError     this machine lacks a file that the run names
│   ├── WorkerNameTakenError        another live worker has this name
│   └── LeaseLostError              another worker took over the run; stop without writing
├── RateLimitedError            too many requests by one actor or link, or on one hold; try again later
├── RunError                    the run failed; recorded on the run
│   ├── NodeFailedError             the node's code raised an exception
│   ├── StepFailedError             a recorded sub-step of a node failed; raised again on each re-entry
│   ├── HoldExpiredError            the hold was not answered in time
│   ├── HoldCancelledError          the hold was cancelled, and its flow wants an error (on_cancel="raise")
│   ├── SkillChangedError           a skill's content differs from what the run was pinned to
│   ├── NodeTimeoutError            a node took longer than its timeout
│   ├── StepTimeoutError            an attempt of a sub-step took longer than its timeout
│   ├── WaitTimeoutError            an event, a callback, a child run or branches did not end in time
│   │   └── HeartbeatMissedError        the system that has the token of a callback sent no heartbeat in time
│   ├── CallbackFailedError         the system that has the token of a callback reported a failure
│   ├── MapFailedError              more items of a map failed than are tolerated
│   ├── ChildFailedError            a child run failed or was cancelled
│   ├── ChildDepthError             child runs start child runs beyond the limit
│   ├── NodeProcessError            the process of a node with isolation="process" ended before the node
│   ├── UserCodeExitError           a function called sys.exit, or raised something that is no Exception
│   ├── GuardrailError              a guardrail blocked the run
│   ├── OutputInvalidError          the output of a document's flow does not fit its schema
│   ├── RoutingError                a router named a node that does not exist
│   ├── StallError                  work remains but nothing can start
│   ├── LoopLimitError              a loop exceeded its maximum number of turns
│   ├── MissingNameError            an expression read a name that has no value
│   ├── NotComparableError          an expression put values in order that have none
│   ├── JoinUnsatisfiedError        too few branches arrived at a join
│   ├── OutcomeUnknownError         an effect may or may not have happened
│   ├── EffectRejectedError         a person rejected the effect; it was not done
│   ├── ReplayMismatchError         sub-steps were called in another order than recorded
│   ├── ScriptError                 ctx.step or ctx.ask in a node whose effect class forbids it
│   ├── ModelError                  a model returned no usable answer
│   │   ├── ModelRefusedError           the endpoint refused the request: wrong key, address or content
│   │   ├── ModelUnavailableError       the endpoint was busy, failing or unreachable in all attempts
│   │   └── ModelReplyError             the reply cannot be parsed
│   ├── HttpResponseError           the response to an HTTP node is not what it expects, or cannot be read
│   ├── TurnLimitError              an agent reached its maximum number of turns
│   ├── AgentLoopError              an agent repeats the same calls, after a warning too
│   ├── BudgetError                 an agent spent its budget before it had an answer
│   └── RunCancelledError           the run was cancelled
├── StoreError                  the store could not carry out the operation
│   ├── StoreBusyError              the store is locked by another process; try again
│   ├── StoreFullError              the disk is full
│   ├── StoreUnavailableError       the store cannot be opened, read or written, or is closed
│   │   └── BlobForbiddenError      the blob store refuses the credentials
│   ├── DirectoryUnavailableError   people and groups cannot be looked up; until then no membership counts
│   ├── NotAStoreError              the file is not a Holdfast database
│   ├── SchemaTooNewError           the store was written by a newer version of Holdfast
│   ├── StoreMovedError             the store was moved or is being moved: it is read-only
│   │   └── StoreReplacedError      its file was removed, replaced or emptied under this process
│   ├── StoreFillingError           a move into this store has not finished
│   ├── CheckpointCorruptError      a record does not match its digest
│   ├── BlobMissingError            a blob that a record refers to is missing or damaged
│   │   └── BlobDamagedError        its content does not fit its name
│   └── KeyMissingError             the data is encrypted under a key that is not configured here
├── TransportError              the broker of a queue cannot be reached, or refused a message
└── NotDone                     raised by a handler: the effect certainly did not happen
    ├── ConnectionUnknownError      a node names a connection or secret that the settings do not have
    └── HttpNotSentError            an HTTP node could not reach its server; nothing was sent
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
        # A message that ends in a list: on its last line the hint would read as part of the last item.
        gap = "\n" if "\n" in self.message else " "
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


class OtherCellError(InputError):
    """The cursor of a list is one of another cell; `facts` has the `cell` that was asked."""

    code = "other_cell"
    status = 400


class SettingsError(InputError):
    code = "settings_invalid"


class EngineError(SettingsError):
    """The engine that drives runs cannot be used, or cannot do this."""

    code = "engine"


class ForbiddenError(HoldfastError):
    code = "forbidden"
    status = 403


class NotAssignedError(ForbiddenError):
    code = "not_assigned"


class ExcludedError(ForbiddenError):
    code = "excluded"


class StepUpRequiredError(ForbiddenError):
    """The hold requires a recent sign-in (`step_up`)."""

    code = "step_up_required"


class VetoedError(ForbiddenError):
    code = "vetoed"


class LinkInvalidError(ForbiddenError):
    code = "link_invalid"


class NotFoundError(HoldfastError):
    code = "not_found"
    status = 404


class TenantNotPlacedError(NotFoundError):
    """No place is known for the tenant, or it is in another one: nothing is written for it here."""

    code = "tenant_not_placed"


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


class MessageNotFoundError(NotFoundError):
    code = "message_not_found"


class CallbackNotFoundError(NotFoundError):
    code = "callback_not_found"


class FlowNotFoundError(NotFoundError):
    code = "flow_not_found"


class NoDocumentError(NotFoundError):
    """The version exists, but it was made from code, or by another tenant's document."""

    code = "no_document"


class ConflictError(HoldfastError):
    code = "conflict"
    status = 409


class FlowNameTakenError(ConflictError):
    """A graph was posted under the name of a flow whose graph comes from its code."""

    code = "name_taken"


class CodeRequiredError(ConflictError):
    """A graph was posted, and the code that it needs was never loaded: a run of it could not start."""

    code = "code_required"


class EffectsRepeatedError(ConflictError):
    """A branch must start earlier than asked, because a question is asked again, and nodes with outside
    effects were executed since then."""

    code = "repeats_effects"


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


class MessageDiffersError(ConflictError):
    code = "message_differs"


class ClaimLostError(ConflictError):
    code = "claim_lost"


class MessageEndedError(ConflictError):
    code = "message_ended"


class CallbackUsedError(ConflictError):
    code = "callback_used"


class CallbackExpiredError(ConflictError):
    code = "callback_expired"
    status = 410


class RunEndedError(ConflictError):
    code = "run_ended"


class RunStatusError(ConflictError):
    code = "run_status"


class RunExistsError(ConflictError):
    code = "run_exists"


class RunBusyError(ConflictError):
    code = "run_busy"
    retryable = True


class LimitReachedError(RunBusyError):
    code = "gate_shut"  # clients match on it, so it keeps the word that the class had before 0.2


GateShutError = LimitReachedError  # the name before 0.2


class ThreadOwnedError(ConflictError):
    """A thread of a graph is in use. `facts`: `owner`, `until`."""

    code = "thread_owned"
    retryable = True


class EffectWaitingError(ConflictError):
    """`facts` name the `hold`, the `run` and the `key`. Call again after the decision."""

    code = "effect_waiting"
    retryable = True


class EffectInDoubtError(EffectWaitingError):
    code = "effect_in_doubt"


class RunReadOnlyError(ConflictError):
    code = "run_read_only"


class ProjectionConflictError(ConflictError):
    """The journal of a run that an engine drives is not what its workflow decided."""

    code = "projection_conflict"


class OlderWorkerError(ConflictError):
    code = "older_worker"
    retryable = True


class HistoryLostError(ConflictError):
    code = "history_lost"


class VersionMismatchError(ConflictError):
    code = "version_mismatch"


class RequirementsMissingError(VersionMismatchError):
    """This process lacks what a run needs: `facts["missing"]`. The run waits for a worker that has it."""

    code = "requirements_missing"


class RunFileMissingError(RequirementsMissingError):
    """A file that one run names is not on this machine; other runs of its version may be served here."""

    code = "run_file_missing"


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
    final = False
    """Whether the sub-step had retries of its own: a retry of its node does not repeat it."""

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


class StepTimeoutError(RunError):
    code = "step_timeout"


class WaitTimeoutError(RunError):
    code = "wait_timeout"


class HeartbeatMissedError(WaitTimeoutError):
    code = "heartbeat_missed"


class CallbackFailedError(RunError):
    """`facts` has what the system reported beside its message (`data`)."""

    code = "callback_failed"


class MapFailedError(RunError):
    code = "map_failed"


class ChildFailedError(RunError):
    """`facts` has the id of the child (`run`) and its status."""

    code = "child_failed"


class ChildDepthError(RunError):
    code = "child_depth"


class NodeProcessError(RunError):
    code = "node_process"


class UserCodeExitError(RunError):
    code = "user_code_exit"


class GuardrailError(RunError):
    code = "guardrail_violation"


class OutputInvalidError(RunError):
    """The output of a flow document does not fit its schema."""

    code = "output_invalid"


class RoutingError(RunError):
    code = "routing"


class StallError(RunError):
    code = "stall"


class LoopLimitError(RunError):
    code = "loop_limit"


class MissingNameError(RunError):
    """A condition or another expression met a name without a value: nothing is decided on it."""

    code = "missing_name"


class NotComparableError(RunError):
    """As MissingNameError, for `<`, `<=`, `>` and `>=` between values that have no order."""

    code = "not_comparable"


class JoinUnsatisfiedError(RunError):
    code = "join_unsatisfied"


class OutcomeUnknownError(RunError):
    code = "outcome_unknown"


class EffectRejectedError(RunError):
    code = "effect_rejected"


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


class HttpResponseError(RunError):
    code = "http_response"


class TurnLimitError(RunError):
    code = "turn_limit"


class AgentLoopError(RunError):
    code = "loop"


class BudgetError(RunError):
    code = "budget"


class RunCancelledError(RunError):
    code = "run_cancelled"


class TransportError(HoldfastError):
    code = "transport"
    status = 503
    retryable = True


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


class StoreReplacedError(StoreMovedError):
    """A worker stops, as with a store that was moved: what it writes would reach no other process."""

    code = "store_replaced"
    status = 503


class StoreFillingError(StoreError):
    code = "store_filling"
    retryable = True


class CheckpointCorruptError(StoreError):
    code = "checkpoint_corrupt"
    status = 500


class BlobMissingError(StoreError):
    code = "blob_missing"
    status = 500


class BlobDamagedError(BlobMissingError):
    code = "blob_damaged"


class BlobForbiddenError(StoreUnavailableError):
    """The blob store refuses the credentials: runs wait until they are repaired."""

    code = "blob_forbidden"
    retryable = False


class KeyMissingError(StoreError):
    """No data is lost: it can be read again once the key (`facts["key"]` names it) is configured."""

    code = "key_missing"


class NotDone(HoldfastError):
    """Raise it from a handler whose effect certainly did not happen: the node may then be retried."""

    code = "not_done"


class ConnectionUnknownError(NotDone):
    code = "connection_unknown"


class HttpNotSentError(NotDone):
    code = "http_not_sent"
