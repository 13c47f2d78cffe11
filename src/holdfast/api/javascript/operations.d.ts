// Made of the OpenAPI document by tools/js_client.py: change the routes, not this file.
import type { EventStream, HoldEvent, Options, PipelineEvent, RunEvent, Sent, StreamOptions } from "./holdfast.js";

/** What each operation of the server is called, takes and gives. */
export interface Operations {
  /** Make a version the current one: new runs start on it, runs that exist keep theirs. */
  activateFlow(flow: string, body: ActivateFlow, options?: Options): Promise<FlowWire>;
  /**
   * Answer a question of a pipeline.
   *
   * The first answer counts: 409 for later ones, with the person of the first. 422 for an unknown answer.
   */
  answerQuestion(run: string, hold: string, body?: AnswerQuestion, options?: Options): Promise<AnswerTaken>;
  /**
   * Where a canvas may place the nodes of a document or a graph: top down, with few crossings
   *
   * unless it is very large and dense. Nothing is stored, and positions that the document has are not read.
   */
  arrangeFlow(body?: ValidateFlow, options?: Options): Promise<Arrangement>;
  /** Ask a question before you decide; the deadline pauses until there is a reply. */
  askBack(hold: string, body: AskBack, options?: Options): Promise<HoldWire>;
  /**
   * Attach files to fields of kind `file`: a form whose parts are named like the fields.
   *
   * Put the returned values into the `response_data` of the decision.
   */
  attachFile(hold: string, body: FormData | Record<string, Blob>, options?: Options): Promise<Page<FileWire>>;
  /** The current head of the audit. */
  auditHead(options?: Options): Promise<AuditHead>;
  /** Sign in with a token in a browser: starts a session, which ends with the token. */
  beginSession(body: BeginSession, options?: Options): Promise<void>;
  /** Withdraw it without a decision. */
  cancelCheckpoint(checkpoint: string, body?: Reason, options?: Options): Promise<CheckpointWire>;
  /** Withdraw it without a decision. */
  cancelHold(hold: string, body?: Reason, options?: Options): Promise<HoldWire>;
  /** Cancel a pipeline. Its worker stops it as soon as possible; its open questions are withdrawn. */
  cancelPipeline(run: string, body?: CancelPipeline, options?: Options): Promise<PipelineWire>;
  /** Cancel a run. Its worker stops it as soon as possible; its open holds are withdrawn. */
  cancelRun(run: string, body?: CancelRun, options?: Options): Promise<RunDetail>;
  /** Cancel or retry many runs, or discard dead letters, each separately. By default only a preview. */
  changeManyRuns(body: BulkRuns, options?: Options): Promise<BulkRunsResult>;
  /** Change it, as its owner or an admin. `If-Match`: only the version that you read. */
  changeView(view: string, body: NewView, options?: Options): Promise<ViewWire>;
  /**
   * Whether the live runs of a flow would fit a document that is not deployed yet, and why not. They keep
   *
   * their version until they are migrated.
   */
  checkDocument(body?: ValidateFlow, options?: Options): Promise<FlowCheck>;
  /** Whether active runs on other versions fit the version that new runs start on, and why not. */
  checkFlow(flow: string, options?: Options): Promise<FlowCheck>;
  /** The history: created, notification sent, resolved and more, oldest first. */
  checkpointHistory(checkpoint: string, options?: Options): Promise<Page<EntryWire>>;
  /** Claim it for a while; an unassigned one becomes yours. */
  claimHold(hold: string, body?: ClaimHold, options?: Options): Promise<HoldWire>;
  /** Claim this message. A review request can be claimed by those who may decide its hold. */
  claimMessage(scope: string, queue: string, message: string, body?: ClaimMessage, options?: Options): Promise<MessageWire>;
  /**
   * Claim ready messages: by priority, then the longest ready. Review requests that the caller may not
   *
   * decide are left out. The list is empty if there is none.
   */
  claimMessages(scope: string, queue: string, body?: ClaimMessages, options?: Options): Promise<ClaimedMessages>;
  /** Remove a set limit: the flow's declared limit applies again. */
  clearLimit(name: string, options?: Options): Promise<void>;
  /** Add a comment, visible to everyone who may see the hold, also after the decision. */
  commentOnHold(hold: string, body: NewComment, options?: Options): Promise<NoteWire>;
  /**
   * Complete a callback, or report that it failed (`error`).
   *
   * The token in the path is the credential. The first outcome counts: the same one again changes nothing,
   * another one is 409. 410: the run has given it up.
   */
  completeCallback(token: string, body?: CompleteCallback, options?: Options): Promise<CallbackWire>;
  /** Complete a claimed message. Completing a review request decides its hold, under the caller's rights. */
  completeMessage(scope: string, queue: string, message: string, body: CompleteMessage, options?: Options): Promise<MessageWire>;
  /**
   * Continue runs that wait at breakpoints: those named, those of a run or of a flow. `preview`: only say
   *
   * which.
   */
  continueBreakpoints(body?: ContinueBreakpoints, options?: Options): Promise<BulkWire>;
  /** The number of holds in that list. */
  countHolds(query?: CountHoldsQuery, options?: Options): Promise<Count>;
  /** The number of runs in that list, in all and by status. */
  countRuns(query?: CountRunsQuery, options?: Options): Promise<RunCounts>;
  /**
   * Start a run. It is durable when this returns; a worker that serves its flow runs it.
   *
   * 201 with its `Location`; 200 and the same run if the key was used before, 422 if the key was used with
   * another input.
   */
  createRun(body?: CreateRun, options?: Options): Promise<RunDetail>;
  /**
   * Send a message to a thread.
   *
   * If a run of it waits for input, the message is the answer: 200 and that run, which resumes (409 if several
   * questions are open and none is named; 404 or 409 if the named one is not there or was decided). Otherwise,
   * and with `auto_resume_pending=false`, it starts a run of `flow` in the thread: 201.
   */
  createThreadRun(thread: string, body?: ThreadRun, query?: CreateThreadRunQuery, options?: Options): Promise<RunDetail>;
  /**
   * Create a token of this tenant, with at most your own rights. Its text is shown only now.
   *
   * It expires after 90 days, or at `expires_at`; with `never_expires` it does not expire.
   */
  createToken(body: CreateToken, options?: Options): Promise<TokenWire>;
  /** Apply one decision to many holds, each separately. By default only a preview. */
  decideMany(body: BulkAnswer, options?: Options): Promise<BulkWire>;
  /** Delegate it to a person: holds for `delegated_user` are assigned to them. */
  delegateDeployment(name: string, body: DelegateDeployment, options?: Options): Promise<DeploymentWire>;
  /** Remove this chat user: it can no longer decide. */
  deleteChatPerson(way: string, chat: string, options?: Options): Promise<void>;
  /** Delete the draft. */
  deleteDraft(hold: string, options?: Options): Promise<void>;
  /** Delete the oldest checkpoint of an ended run; 409 for any other. */
  deleteGraphCheckpoint(checkpoint: string, options?: Options): Promise<void>;
  /** Delete the group. */
  deleteGroup(key: string, options?: Options): Promise<void>;
  /** Remove a person from the directory and from all groups and roles. */
  deletePerson(person: string, options?: Options): Promise<void>;
  /**
   * Delete it: its rules apply to no hold that opens from now on; open holds keep what they said.
   *
   * The people who delete a rule that needs several people, or excludes some, cannot decide what it would have
   * bound, until another person deletes it again and so confirms it. A change of such a rule has the same
   * effect.
   */
  deletePolicy(name: string, options?: Options): Promise<void>;
  /** Delete the role. */
  deleteRole(key: string, options?: Options): Promise<void>;
  /**
   * Delete an ended run for good, with its history, holds and artifacts. The audit keeps its entries.
   *
   * 409 for a run that has not ended: cancel it first. Forks of it stay.
   */
  deleteRun(run: string, options?: Options): Promise<void>;
  /** Delete it. Runs that it has started continue. */
  deleteSchedule(name: string, options?: Options): Promise<void>;
  /** Delete it; the holds stay. */
  deleteView(view: string, options?: Options): Promise<void>;
  /**
   * What differs between two versions of a document, or a version and a document that is sent: nodes by
   *
   * id, edges, settings, each with both values; layout apart.
   */
  diffFlow(flow: string, body?: DiffFlow, options?: Options): Promise<FlowDiff>;
  /** Compare this run, or a checkpoint `at` of it, with another: values, visits, cost. */
  diffRuns(run: string, query: DiffRunsQuery, options?: Options): Promise<Record<string, unknown>>;
  /**
   * Discard it: the next worker that serves its flow cancels it.
   *
   * With `unread` it is cancelled at once, without being loaded: for a run whose flow no worker serves.
   */
  discardDeadRun(run: string, body?: DiscardDead, options?: Options): Promise<RunDetail>;
  /**
   * Discard the draft. What is deployed stays, and is the text of the document again. 428 without
   *
   * `If-Match`.
   */
  discardDocument(document: string, options?: Options): Promise<void>;
  /** Back again. */
  endAway(person: string, options?: Options): Promise<void>;
  /** You are back. */
  endOwnAway(options?: Options): Promise<void>;
  /** Report that you no longer look at it. */
  endPresence(hold: string, options?: Options): Promise<void>;
  /** Sign out, here and everywhere this session is used. */
  endSession(options?: Options): Promise<void>;
  /** The run with its whole history as a file, for another store; encrypted if the store is. */
  exportRun(run: string, options?: Options): Promise<Response>;
  /** Extend its deadline. */
  extendHold(hold: string, body: ExtendHold, options?: Options): Promise<HoldWire>;
  /** Extend the claim, while the work takes longer. */
  extendMessage(scope: string, queue: string, message: string, body: ExtendMessage, options?: Options): Promise<MessageWire>;
  /** Start the runs of its past instants in a range. An instant that has a run is left as it is. */
  fillSchedule(name: string, body: FillSchedule, options?: Options): Promise<ScheduleFill>;
  /** Create a run that starts at this checkpoint, with a patch of its state; the source is not changed. */
  forkGraphCheckpoint(checkpoint: string, body?: ForkGraphCheckpoint, options?: Options): Promise<GraphRun>;
  /** Create a new run that starts at a checkpoint of this one. This one is not changed. */
  forkRun(run: string, body?: BranchRun, options?: Options): Promise<RunDetail>;
  /** An artifact as a file: bytes unchanged, text as text, everything else as JSON. */
  getArtifact(run: string, name: string, options?: Options): Promise<Response>;
  /** A checkpoint with the states of its nodes: by its id, the number of its record, or `latest`. */
  getCheckpoint(run: string, checkpoint: string, options?: Options): Promise<CheckpointDetail>;
  /** One hold. */
  getCheckpointHold(checkpoint: string, options?: Options): Promise<CheckpointWire>;
  /** Every death of a worker that had this run, with the nodes that were running. */
  getDeadRun(run: string, options?: Options): Promise<DeadRunWire>;
  /** By name or id. */
  getDeployment(name: string, options?: Options): Promise<DeploymentWire>;
  /** The text that people work on: the draft that was saved last, else that of the current version. */
  getDocument(document: string, options?: Options): Promise<EditableDocument>;
  /** Your draft; its fields are null if there is none. */
  getDraft(hold: string, options?: Options): Promise<DraftWire>;
  /** The backlog, and how late it is. */
  getFigures(options?: Options): Promise<FiguresWire>;
  /** A flow's versions, newest first. Versions of its code come before graphs that were posted. */
  getFlow(flow: string, options?: Options): Promise<FlowWire>;
  /**
   * The document of a version: the bytes that were sent, or written anew as JSON or YAML with its present
   *
   * layout. 404 `no_document` for a flow that comes from code.
   */
  getFlowDocument(flow: string, version: string, query?: GetFlowDocumentQuery, options?: Options): Promise<Response>;
  /** The graph of a version, as SVG. */
  getFlowDrawing(flow: string, version: string, options?: Options): Promise<Response>;
  /** How a document is drawn. Its ETag changes with each change of the layout. */
  getFlowLayout(flow: string, version: string, options?: Options): Promise<FlowLayout>;
  /**
   * The JSON Schema (2020-12) of flow documents, for editors: completion, and problems while one types.
   *
   * `version` is the major version of the format. It needs no credential: it says nothing about a tenant.
   */
  getFlowSchema(version: string, options?: Options): Promise<Record<string, unknown>>;
  /** Where the latest runs of a flow failed and wait, and how long each node takes. */
  getFlowStats(flow: string, query?: GetFlowStatsQuery, options?: Options): Promise<FlowStatisticsWire>;
  /** The graph of a version: by its fingerprint, its label, or `latest`. */
  getFlowVersion(flow: string, version: string, options?: Options): Promise<FlowGraph>;
  /** One checkpoint. */
  getGraphCheckpoint(checkpoint: string, options?: Options): Promise<GraphCheckpoint>;
  /** One hold. Its ETag is its version: send it as If-Match to decide on what you have seen. */
  getHold(hold: string, options?: Options): Promise<HoldWire>;
  /** The JSON Schema of the input that a version takes; empty if it does not say. */
  getInputSchema(flow: string, version: string, options?: Options): Promise<Record<string, unknown>>;
  /** A message with its content, state and result. */
  getMessage(scope: string, queue: string, message: string, options?: Options): Promise<MessageWire>;
  /**
   * One series of the tenant, computed from its newest holds or runs.
   *
   * `time_to_decision`: p50 and p95 in seconds, and the number of decisions by people. `backlog`: open holds
   * by age, at the end of each step. `breaches`: deadlines that passed before the decision. `runs`: runs that
   * completed, failed and were cancelled. For long series, collect the metrics of `--metrics`.
   */
  getMetric(metric: string, query?: GetMetricQuery, options?: Options): Promise<MetricWire>;
  /** Your own entry in the store's directory. */
  getOwnPerson(options?: Options): Promise<PersonWire>;
  /** By id or address. */
  getPerson(person: string, options?: Options): Promise<PersonWire>;
  /** The progress of a pipeline. */
  getPipeline(run: string, options?: Options): Promise<PipelineWire>;
  /** The content of the pipeline's `checkpoint.json`. */
  getPipelineCheckpoint(run: string, options?: Options): Promise<Record<string, unknown>>;
  /** The context values that its stages share, by key. */
  getPipelineContext(run: string, options?: Options): Promise<Record<string, unknown>>;
  /** The pipeline as SVG: each stage with its state, and the taken edges. */
  getPipelineGraph(run: string, options?: Options): Promise<Response>;
  /**
   * A report of a run's whole history: each node in order, what it changed, what failed and how that was
   *
   * handled. The run need not have ended.
   */
  getPostmortem(run: string, query?: GetPostmortemQuery, options?: Options): Promise<PostmortemWire>;
  /** Your own. Its ETag changes with each of your changes. */
  getPreferences(options?: Options): Promise<Preferences>;
  /** One run. */
  getRun(run: string, options?: Options): Promise<RunDetail>;
  /** The run's graph with the state of each node, as SVG. */
  getRunDrawing(run: string, options?: Options): Promise<Response>;
  /**
   * The graph of a run's version with the place of each node and edge. It does not change while the run
   *
   * does: the timeline has the states.
   */
  getRunGraph(run: string, query?: GetRunGraphQuery, options?: Options): Promise<GraphWire>;
  /** The result of a run. `wait`: at most this many seconds, until it has ended or waits for input. */
  getRunResult(run: string, query?: GetRunResultQuery, options?: Options): Promise<RunResult>;
  /** A schedule with its settings and state. */
  getSchedule(name: string, options?: Options): Promise<ScheduleWire>;
  /** The caller and their rights. */
  getSession(options?: Options): Promise<SessionWire>;
  /** What a stage left, whole: `response`, `stdout`, `stderr`, `verdict` or `diff`. */
  getStageOutput(run: string, stage: string, output: string, query?: GetStageOutputQuery, options?: Options): Promise<Response>;
  /** What the model of a stage was given: the preamble, the prompt, and how to report the verdict. */
  getStagePrompt(run: string, stage: string, query?: GetStagePromptQuery, options?: Options): Promise<Response>;
  /** The state of the server and its store. */
  getStatus(options?: Options): Promise<StatusWire>;
  /**
   * The visit that a record settled, or that was under way there: its input, output, attempts with their
   *
   * workers, sub-steps, live output, changes of the state, and error with its traceback. Lines of code in a
   * traceback need the right `runs:write`.
   */
  getStep(run: string, seq: string, query?: GetStepQuery, options?: Options): Promise<StepWire>;
  /**
   * Each visit of each node: its start, waits, questions, retries and outcome; the latest first page, and
   *
   * `next` for earlier ones.
   */
  getTimeline(run: string, query?: GetTimelineQuery, options?: Options): Promise<TimelineWire>;
  /** One view. */
  getView(view: string, options?: Options): Promise<ViewWire>;
  /**
   * Answer a question of a run; the body is read as JSON whatever its content type.
   *
   * A text is matched with the options' ids, then with their labels, ignoring case: 422 with the ids if it
   * matches none. 409 if several questions are open and none is named, or if it is already decided.
   */
  giveInput(run: string, body: GiveInput, options?: Options): Promise<InputTaken>;
  /**
   * Give the message up, as its worker or while it is not claimed. It is kept until it is requeued or
   *
   * withdrawn.
   */
  giveUpMessage(scope: string, queue: string, message: string, body?: DeadMessage, options?: Options): Promise<MessageWire>;
  /** What became of its instants, the newest first: the last hundred. */
  historyOfSchedule(name: string, options?: Options): Promise<Page<FiringWire>>;
  /**
   * What each option would lead to, with the values that its form proposes: the run is continued in memory
   *
   * up to the next questions and outside effects. Nothing is done outside, and nothing is stored.
   */
  holdConsequences(hold: string, options?: Options): Promise<HoldPreview>;
  /**
   * What was said before an agent asked: its instructions, its model, its tools and their results. Empty
   *
   * if no agent asked. Secrets are masked; results of tools are not checked.
   */
  holdConversation(hold: string, options?: Options): Promise<HoldConversation>;
  /** One decision as a file that `tools/verify_evidence.py` verifies offline. The export is audited. */
  holdEvidence(hold: string, options?: Options): Promise<unknown>;
  /** Its history, oldest first. Each entry has its number in the audit. */
  holdHistory(hold: string, options?: Options): Promise<Page<EntryWire>>;
  /** Metrics of the holds that you may see. Durations are seconds, rates are shares of 1. */
  holdMetrics(query?: HoldMetricsQuery, options?: Options): Promise<HoldMetrics>;
  /** The schema of an answer to it, for programs. */
  holdSchema(hold: string, options?: Options): Promise<AnswerSchema>;
  /**
   * Import an exported run as read-only history, or as a new run that continues from its end.
   *
   * Importing the same file again returns the same run. A new run of a flow that may ask people starts again
   * with the run's input, because a file proves no decision: its `forked_from` says so. Where the file shows
   * work with outside effects, that is refused with 409 and nothing is imported, unless `repeat_effects` is
   * set.
   */
  importRun(body: Sent, query?: ImportRunQuery, options?: Options): Promise<RunDetail>;
  /** The run's artifacts so far, by name. */
  listArtifacts(run: string, options?: Options): Promise<Page<ArtifactWire>>;
  /**
   * Actions and refusals, the oldest first unless `order` is `newest`. A page may be short and still have a
   *
   * `next`.
   */
  listAudit(query?: ListAuditQuery, options?: Options): Promise<Page<AuditWire>>;
  /** Business calendars; holds that name none use `default`. */
  listCalendars(options?: Options): Promise<Page<HoldSetting>>;
  /** The callbacks that a run waits for, with their tokens. */
  listCallbacks(run: string, options?: Options): Promise<OpenCallbacks>;
  /** Holds that you may see; `checkpoint_type=debug_breakpoint` for the bar of breakpoints. */
  listCheckpointHolds(query?: ListCheckpointHoldsQuery, options?: Options): Promise<Page<CheckpointWire>>;
  /** A run's checkpoints, newest first, without their state. */
  listCheckpoints(run: string, query?: ListCheckpointsQuery, options?: Options): Promise<Page<CheckpointSummary>>;
  /** Comments, questions back and their answers, oldest first. */
  listComments(hold: string, options?: Options): Promise<Page<NoteWire>>;
  /** Notifications that could not be delivered, at most 200. */
  listDeadNotices(options?: Options): Promise<Page<DeadNotice>>;
  /** Dead letters: runs that were given up because their workers kept dying, newest first. */
  listDeadRuns(query?: ListDeadRunsQuery, options?: Options): Promise<Page<RunWire>>;
  /** List deployments; a hold's `deployment` is the id of one. */
  listDeployments(options?: Options): Promise<Page<DeploymentWire>>;
  /** The documents of the tenant, by name: drafts, and those that are deployed. */
  listDocuments(query?: ListDocumentsQuery, options?: Options): Promise<Page<SavedDocument>>;
  /** The stored events after a number, oldest first, without gaps or repetitions. */
  listEvents(run: string, query?: ListEventsQuery, options?: Options): Promise<EventPage>;
  /** The attached files, in the order of their upload. */
  listFiles(hold: string, options?: Options): Promise<Page<FileWire>>;
  /** All flows in the store, by name, with their versions. */
  listFlows(options?: Options): Promise<Page<FlowWire>>;
  /** The newest checkpoints of a graph (the version of a flow), or of one run of it, without their state. */
  listGraphCheckpoints(query: ListGraphCheckpointsQuery, options?: Options): Promise<Page<GraphCheckpointMetadata>>;
  /** All groups. */
  listGroups(options?: Options): Promise<Page<CircleWire>>;
  /** Holds that you may see, with stable pages. `view=mine` is your inbox. */
  listHolds(query?: ListHoldsQuery, options?: Options): Promise<Page<HoldWire>>;
  /**
   * Runs that a process has now, of all tenants, the newest first: those of `worker`, or all. A process
   *
   * that only runs one flow has leases too, and is not in the list of workers.
   */
  listLeases(query?: ListLeasesQuery, options?: Options): Promise<Page<LeaseWire>>;
  /**
   * Limits in effect, with the number of active and waiting runs; and those that items of maps share by a
   *
   * key (`items:KEY`, of the caller's tenant), as far as items run or wait.
   */
  listLimits(query?: ListLimitsQuery, options?: Options): Promise<Page<LimitWire>>;
  /**
   * The messages of a queue, newest first. The content of a review request is `null` for callers who may
   *
   * not see its hold.
   */
  listMessages(scope: string, queue: string, query?: ListMessagesQuery, options?: Options): Promise<Page<MessageWire>>;
  /** Notifications in one state, newest first. */
  listNotices(query?: ListNoticesQuery, options?: Options): Promise<Page<NoticeWire>>;
  /**
   * Runs that wait for input, with their questions: the newest question first.
   *
   * With `mine` a page may be short and still have a `next`: only a limited number of questions is scanned.
   */
  listPendingRuns(query?: ListPendingRunsQuery, options?: Options): Promise<Page<PendingWire>>;
  /** All people in the store's directory. */
  listPeople(options?: Options): Promise<Page<PersonWire>>;
  /** The stored policies, by name. */
  listPolicies(options?: Options): Promise<Page<HoldSetting>>;
  /** Who is looking at it now. */
  listPresence(hold: string, options?: Options): Promise<Page<HoldViewerWire>>;
  /** A pipeline's open questions that you may see. */
  listQuestions(run: string, options?: Options): Promise<QuestionList>;
  /** The tenant's queues that have messages, with the number of messages by state. */
  listQueues(options?: Options): Promise<Page<QueueWire>>;
  /** Records of a run's journal from a number on, without their values. Pruned ones are left out. */
  listRecords(run: string, query?: ListRecordsQuery, options?: Options): Promise<RecordPage>;
  /** All roles to which holds can be assigned. */
  listRoles(options?: Options): Promise<Page<CircleWire>>;
  /** The tenant's runs, newest first. `q` searches with words. */
  listRuns(query?: ListRunsQuery, options?: Options): Promise<Page<RunWire>>;
  /** The tenant's schedules, by name. */
  listSchedules(query?: ListSchedulesQuery, options?: Options): Promise<Page<ScheduleWire>>;
  /** Every version of every skill, or of one. */
  listSkills(query?: ListSkillsQuery, options?: Options): Promise<Page<SkillWire>>;
  /** The runs of a thread, newest first. */
  listThreadRuns(thread: string, query?: ListThreadRunsQuery, options?: Options): Promise<Page<RunWire>>;
  /** The tenant's threads, the one with the newest run first. */
  listThreads(query?: ListThreadsQuery, options?: Options): Promise<Page<ThreadWire>>;
  /** The tenant's tokens, newest first, without their text. */
  listTokens(options?: Options): Promise<Page<TokenWire>>;
  /** The holds of a view that you may see. */
  listView(view: string, query?: ListViewQuery, options?: Options): Promise<Page<HoldWire>>;
  /** Your views and shared ones, by title. `counts=true`: with the number of holds for you. */
  listViews(query?: ListViewsQuery, options?: Options): Promise<Page<ViewWire>>;
  /** Workers by name, including those that stopped heartbeating within the last day. */
  listWorkers(options?: Options): Promise<Page<WorkerWire>>;
  /** The newest checkpoint of a run, or of a node of it. */
  loadGraphCheckpoint(run: string, query?: LoadGraphCheckpointQuery, options?: Options): Promise<GraphCheckpoint>;
  /**
   * Create a link for one person. It is valid until it is used, the hold is reassigned or decided, or its
   *
   * links are revoked.
   *
   * A link for another person is sent to their address and not returned: its holder decides in their name.
   * 409 if no channel has an address of theirs.
   */
  makeLink(hold: string, body: NewLink, options?: Options): Promise<LinkWire>;
  /** Mark it as seen; the first time is recorded in the audit and counts in the metrics. */
  markSeen(hold: string, options?: Options): Promise<void>;
  /** Its next starts, if it is not paused. */
  nextOfSchedule(name: string, query?: NextOfScheduleQuery, options?: Options): Promise<Instants>;
  /** Pause it until it is resumed. */
  pauseSchedule(name: string, body?: PauseSchedule, options?: Options): Promise<ScheduleWire>;
  /** Decide it after a few seconds, unless you undo the decision before. */
  placeDecision(hold: string, body?: PlaceDecision, options?: Options): Promise<HoldWire>;
  /** The same for one option, or with values that were filled in. */
  previewHold(hold: string, body?: PreviewAnswer, options?: Options): Promise<HoldPreview>;
  /**
   * What a resume, retry, fork, rewind or cancel would do: which nodes run again, which effects may
   *
   * happen once more, which questions are withdrawn or asked again. With a patch also what the new run would
   * do: it is continued in memory. Nothing is changed, and nothing is done outside.
   */
  previewRunChange(run: string, body: PreviewChange, options?: Options): Promise<RunChangePreview>;
  /** Publish a message, once for each `id` or `Idempotency-Key`. */
  publishMessage(scope: string, queue: string, body: PublishMessage, options?: Options): Promise<MessageWire>;
  /** Publish a version. It is immutable: the same content again has no effect, other content is refused. */
  publishSkill(name: string, version: string, body?: PublishSkill, options?: Options): Promise<SkillWire>;
  /** Set an absence; a substitute acts for them. */
  putAway(person: string, body: PutAway, options?: Options): Promise<void>;
  /** Set it. Deadlines of open holds that use it are recalculated. */
  putCalendar(name: string, body: Record<string, unknown>, options?: Options): Promise<HoldSetting>;
  /** Create it, or change its settings for later runs. */
  putDeployment(name: string, body: PutDeployment, options?: Options): Promise<DeploymentWire>;
  /**
   * Replace the layout of a document. What it does, its version and its bytes stay as they are. 428 without
   *
   * `If-Match`.
   */
  putFlowLayout(flow: string, version: string, body?: FlowLayout, options?: Options): Promise<FlowLayout>;
  /** With exactly these members. */
  putGroup(key: string, body: PutCircle, options?: Options): Promise<CircleWire>;
  /** Set your own absence and substitute. */
  putOwnAway(body: PutAway, options?: Options): Promise<void>;
  /** Add or change a person. A person who is not `active` has no rights. */
  putPerson(person: string, body?: PutPerson, options?: Options): Promise<PersonWire>;
  /** Store it: it applies to holds that open from now on. */
  putPolicy(name: string, body: Record<string, unknown>, options?: Options): Promise<HoldSetting>;
  /** All of them at once; what is left out gets its default. */
  putPreferences(body?: Preferences, options?: Options): Promise<Preferences>;
  /** With exactly these members. */
  putRole(key: string, body: PutCircle, options?: Options): Promise<CircleWire>;
  /** Create (201) or change (200) a schedule. `If-Match`: only the version that you read. */
  putSchedule(name: string, body: PutSchedule, options?: Options): Promise<ScheduleWire>;
  /** Download a file; browsers do not display it. The access is in the audit. */
  readFile(hold: string, digest: string, options?: Options): Promise<Response>;
  /** Reassign it; the new assignee is notified. */
  reassignCheckpoint(checkpoint: string, body?: ReassignHold, options?: Options): Promise<CheckpointWire>;
  /** Reassign it; the new assignee is notified. Older links become invalid. */
  reassignHold(hold: string, body?: ReassignHold, options?: Options): Promise<HoldWire>;
  /**
   * Store a version of a flow: 201, or 200 if it is already stored.
   *
   * A document (its text as the body with `application/yaml`, and `dry_run` and `activate` in the query; or in
   * JSON) can be started at once, by any worker: 422 with every problem in `errors`, each with its place and
   * fix. A known version stays as it is, and becomes current only with `activate: true`. A graph is data and
   * contains no code: its runs advance on workers that have code with the same graph.
   * 409 `name_taken` if a flow of that name comes from code and has another graph.
   */
  registerFlow(body?: RegisterFlow, options?: Options): Promise<FlowGraph>;
  /** Release a claim. */
  releaseHold(hold: string, options?: Options): Promise<HoldWire>;
  /** Give a claimed message back. After its last attempt it becomes a dead letter. */
  releaseMessage(scope: string, queue: string, message: string, body: ReleaseMessage, options?: Options): Promise<MessageWire>;
  /** Retry it, after its cause was fixed. */
  replayNotice(message: string, options?: Options): Promise<DeadNotice>;
  /** Retry failed notifications, each separately. By default only a preview. */
  replayNotices(body: ReplayNotices, options?: Options): Promise<ReplayedNotices>;
  /** Reply to a question. */
  replyToQuestion(hold: string, body: ReplyToQuestion, options?: Options): Promise<HoldWire>;
  /** Report that you are looking at it, for 30 seconds: repeat it every 10 to 20. Returns all viewers. */
  reportPresence(hold: string, body?: PresenceBeat, options?: Options): Promise<Page<HoldViewerWire>>;
  /** Make a dead message ready again. */
  requeueMessage(scope: string, queue: string, message: string, options?: Options): Promise<MessageWire>;
  /** Decide it: `{"decision": ...}` or `{"resolution": ...}`. A breakpoint takes `continue`. */
  resolveCheckpoint(checkpoint: string, body?: HoldAnswer, options?: Options): Promise<CheckpointWire>;
  /**
   * Decide it, once; if several people must agree, vote.
   *
   * `Idempotency-Key`: a repeated request gets the same answer. `If-Match`: only the version that you read.
   * 409 names who decided before; 422 names each invalid field, and the hold stays open.
   */
  resolveHold(hold: string, body?: HoldAnswer, options?: Options): Promise<HoldWire>;
  /** Undo a yank. */
  restoreSkill(name: string, version: string, options?: Options): Promise<SkillWire>;
  /**
   * Resume a run from its latest checkpoint or another.
   *
   * The latest checkpoint or the question that was just answered, and no `input_data`: the same run is
   * resumed, 200, and the question is not asked again. An older checkpoint, or an input: a fork of it, 201
   * with its `Location` and `forked_from`; the run itself is not changed. A finished run: 200, and nothing is
   * executed.
   */
  resumeRun(run: string, body?: ResumeRun, query?: ResumeRunQuery, options?: Options): Promise<RunDetail>;
  /** Resume it, from its next start. */
  resumeSchedule(name: string, options?: Options): Promise<ScheduleWire>;
  /** Retry it once the cause is fixed: any worker may resume it. */
  retryDeadRun(run: string, options?: Options): Promise<RunDetail>;
  /** End its delegation. */
  revokeDelegation(name: string, options?: Options): Promise<DeploymentWire>;
  /** Revoke all links to the hold. */
  revokeLinks(hold: string, options?: Options): Promise<HoldWire>;
  /** Revoke it: on this server at once, on others within five seconds. */
  revokeToken(token: string, options?: Options): Promise<TokenWire>;
  /** Replace this run by a fork: this one is cancelled, and both link to each other. */
  rewindRun(run: string, body?: BranchRun, options?: Options): Promise<RunDetail>;
  /**
   * Save the text as it is, finished or not. Runs and the deployed version stay as they are; `POST
   *
   * /v1/flows` deploys it. 428 without `If-Match` if there is one; a new one needs none. With
   * `If-None-Match: *` only a new one is saved, with `If-Match: *` only one that exists; else 412.
   */
  saveDocument(document: string, body: SaveDocument, options?: Options): Promise<EditableDocument>;
  /** Save your draft; it is not checked. */
  saveDraft(hold: string, body?: DraftWire, options?: Options): Promise<void>;
  /**
   * Save a checkpoint that is stored exactly like this: nothing changes.
   *
   * 409 for any other: checkpoints are written by the run, and a changed one is a fork.
   */
  saveGraphCheckpoint(checkpoint: string, body: GraphCheckpoint, options?: Options): Promise<GraphCheckpoint>;
  /** Save filters of holds under a title. */
  saveView(body: NewView, options?: Options): Promise<ViewWire>;
  /**
   * Send an event to the run that waits for its name and key, or to one run. Without such a run it is kept
   *
   * for `keep`.
   */
  sendEvent(body: SendEvent, options?: Options): Promise<SentEvent>;
  /** Tell the run that the work is still in progress: its next heartbeat is due later (`expires_at`). */
  sendHeartbeat(token: string, options?: Options): Promise<CallbackWire>;
  /** Set the person of a chat user. */
  setChatPerson(way: string, chat: string, body: ChatPerson, options?: Options): Promise<void>;
  /** Set a limit that overrides the flow's: `flow:refund`, `flow:refund/*`, `flow:refund/acme`. */
  setLimit(name: string, body?: SetLimit, options?: Options): Promise<LimitWire>;
  /** Replay past decisions under these rules. Nothing is changed, and no judge is called. */
  simulatePolicies(body?: SimulatePolicies, options?: Options): Promise<Simulation>;
  /** Snooze it until then. Its deadline stays. */
  snoozeHold(hold: string, body: SnoozeHold, options?: Options): Promise<void>;
  /**
   * Send a message to the agent that is running in the run. A model gets it once, after the tool calls that
   *
   * it makes now; a command-line agent in a further turn. 409 if no stage with an agent is active.
   */
  steerRun(run: string, body: SteerRun, options?: Options): Promise<SteerTaken>;
  /**
   * Changes of the holds that you may see, as server-sent events.
   *
   * The id of each is its number in the tenant's audit; `Last-Event-ID` or `after` continues from
   * there, without one it starts now, with the event `stream.opened` whose id is the current number. A number
   * that is not there yet, because the store was restored from a backup, counts as none. The numbers have gaps
   * where you may not see a change.
   */
  streamHolds(query?: StreamHoldsQuery, options?: StreamOptions): EventStream<HoldEvent>;
  /**
   * A pipeline's events as server-sent events, in the form of section 9.6, from its stored log.
   *
   * A client that connects later gets every event from the first; one that reconnects with `Last-Event-ID`
   * misses and repeats nothing. The stream ends after the last event of an ended run; 204: there is and will
   * be nothing after that id.
   */
  streamPipeline(run: string, query?: StreamPipelineQuery, options?: StreamOptions): EventStream<PipelineEvent>;
  /**
   * A run's events as server-sent events, from its stored log.
   *
   * The id of each is its number: a client that reconnects with `Last-Event-ID` (browsers do) misses and
   * repeats nothing. The stream ends after the last event of an ended run; 204: there is and will be nothing
   * after that number. `names=seed`: `checkpoint_created`, `checkpoint_resumed` and `approval` with the fields
   * of the runtime proposal, as under `/runs/{run}/stream`.
   */
  streamRun(run: string, query?: StreamRunQuery, options?: StreamOptions): EventStream<RunEvent>;
  /**
   * Start a pipeline; it is durable when this returns, and any worker runs it.
   *
   * The files that it names are those of `files`; no other is read. Its prompts go to `backend`, else to that
   * of the server, else to the one that all live workers have; if these differ, `backend` must be given.
   * 400 with every problem of the document and its position. 403 for commands, unless the operator allows them
   * (`holdfast serve --allow-code`).
   */
  submitPipeline(body: SubmitPipeline, options?: Options): Promise<PipelineWire>;
  /** Continue in another of your tenants: a new session in place of this one. Only for browsers. */
  switchTenant(body: SwitchTenant, options?: Options): Promise<void>;
  /** A click in Slack: the request URL of the app's interactivity. Signed by Slack (`X-Slack-Signature`). */
  takeClick(way: string, body: Sent, options?: Options): Promise<void>;
  /**
   * A reply to a mail: the whole message as the mail server received it, with its Authentication-Results.
   *
   * Signed as Standard Webhooks by the system that forwards it.
   */
  takeMail(way: string, body: Sent, options?: Options): Promise<MailTaken>;
  /**
   * Answer a hold from another system: `{"data": {"correlation_id", "decision", ...}}`.
   *
   * Signed as Standard Webhooks. A repeated message has no effect and is answered with 200.
   */
  takeWebhook(way: string, body: unknown, options?: Options): Promise<WebhookTaken>;
  /** Start one run now, in addition to its scheduled starts, even while it is paused. */
  triggerSchedule(name: string, body?: TriggerSchedule, options?: Options): Promise<ScheduleTrigger>;
  /** Undo your placed decision. */
  undoDecision(hold: string, options?: Options): Promise<HoldWire>;
  /** End the snooze. */
  unsnoozeHold(hold: string, options?: Options): Promise<void>;
  /** Stop watching it. */
  unwatchHold(hold: string, options?: Options): Promise<void>;
  /**
   * All problems of a flow, each with its position and fix. Nothing is stored or run.
   *
   * Send a document (its text as the body with `application/yaml`, or in JSON), a graph, or the name of a
   * flow.
   */
  validateFlow(body?: ValidateFlow, options?: Options): Promise<FlowValidation>;
  /** Verify the chain from the first record to the head. `against`: an earlier head that you kept. */
  verifyAudit(body?: VerifyAudit, options?: Options): Promise<AuditVerification>;
  /** The same as resolve, for holds on which several people must agree. */
  voteOnHold(hold: string, body?: HoldAnswer, options?: Options): Promise<HoldWire>;
  /** Watch it. */
  watchHold(hold: string, options?: Options): Promise<void>;
  /**
   * Withdraw an open or dead message. A worker that has claimed it cannot complete it any more. The request
   *
   * of a review is withdrawn only by those who may decide it.
   */
  withdrawMessage(scope: string, queue: string, message: string, options?: Options): Promise<void>;
  /** Withdraw the question: no reply is needed, and the deadline continues. */
  withdrawQuestion(hold: string, body?: WithdrawQuestion, options?: Options): Promise<HoldWire>;
  /** No new run gets it; runs that are pinned to it keep it. */
  yankSkill(name: string, version: string, body?: YankReason, options?: Options): Promise<SkillWire>;
}

/** Lists of many pages as one. */
export interface Each {
  getTimeline(run: string, query?: GetTimelineQuery, options?: Options): AsyncGenerator<VisitWire, void, undefined>;
  listAudit(query?: ListAuditQuery, options?: Options): AsyncGenerator<AuditWire, void, undefined>;
  listCheckpointHolds(query?: ListCheckpointHoldsQuery, options?: Options): AsyncGenerator<CheckpointWire, void, undefined>;
  listCheckpoints(run: string, query?: ListCheckpointsQuery, options?: Options): AsyncGenerator<CheckpointSummary, void, undefined>;
  listDocuments(query?: ListDocumentsQuery, options?: Options): AsyncGenerator<SavedDocument, void, undefined>;
  listEvents(run: string, query?: ListEventsQuery, options?: Options): AsyncGenerator<EventWire, void, undefined>;
  listHolds(query?: ListHoldsQuery, options?: Options): AsyncGenerator<HoldWire, void, undefined>;
  listLeases(query?: ListLeasesQuery, options?: Options): AsyncGenerator<LeaseWire, void, undefined>;
  listMessages(scope: string, queue: string, query?: ListMessagesQuery, options?: Options): AsyncGenerator<MessageWire, void, undefined>;
  listNotices(query?: ListNoticesQuery, options?: Options): AsyncGenerator<NoticeWire, void, undefined>;
  listPendingRuns(query?: ListPendingRunsQuery, options?: Options): AsyncGenerator<PendingWire, void, undefined>;
  listRuns(query?: ListRunsQuery, options?: Options): AsyncGenerator<RunWire, void, undefined>;
  listSchedules(query?: ListSchedulesQuery, options?: Options): AsyncGenerator<ScheduleWire, void, undefined>;
  listThreadRuns(thread: string, query?: ListThreadRunsQuery, options?: Options): AsyncGenerator<RunWire, void, undefined>;
  listThreads(query?: ListThreadsQuery, options?: Options): AsyncGenerator<ThreadWire, void, undefined>;
  listView(view: string, query?: ListViewQuery, options?: Options): AsyncGenerator<HoldWire, void, undefined>;
}

export interface CountHoldsQuery {
  view?: HoldView;
  q?: string | null;
  status?: HoldStatus[];
  type?: string[];
  assignee?: string[];
  group?: string[];
  role?: string[];
  priority?: string[];
  deployment?: string[];
  flow?: string[];
  run?: string[];
  instance_key?: string[];
  tag?: string[];
  text?: string | null;
  created_from?: string | Date | null;
  created_to?: string | Date | null;
  expires_from?: string | Date | null;
  expires_to?: string | Date | null;
  resolved_by?: string[];
  resolved_from?: string | Date | null;
  resolved_to?: string | Date | null;
}

export interface CountRunsQuery {
  status?: RunStatus[];
  flow?: string | null;
  version?: string | null;
  thread?: string | null;
  forked_from?: string | null;
  parent_run?: string | null;
  instance_key?: string | null;
  q?: string | null;
}

export interface CreateThreadRunQuery {
  auto_resume_pending?: boolean;
}

export interface DiffRunsQuery {
  to: string;
  at?: string | null;
  whole?: boolean;
}

export interface GetFlowDocumentQuery {
  format?: "json" | "source" | "yaml";
}

export interface GetFlowStatsQuery {
  version?: string | null;
  runs?: number;
}

export interface GetMetricQuery {
  from?: string | Date | null;
  to?: string | Date | null;
  step?: string | null;
}

export interface GetPostmortemQuery {
  format?: "html" | "md";
  visits?: number;
}

export interface GetRunGraphQuery {
  open?: string[];
}

export interface GetRunResultQuery {
  /** Seconds to wait until it ends or waits. */
  wait?: number;
}

export interface GetStageOutputQuery {
  visit?: number;
}

export interface GetStagePromptQuery {
  visit?: number;
}

export interface GetStepQuery {
  /** As it was at the record, without what came later. */
  past?: boolean;
}

export interface GetTimelineQuery {
  /** Visits, the latest. */
  limit?: number;
  cursor?: string | null;
  fold?: "items" | null;
  within?: string;
  since?: number | null;
}

export interface HoldMetricsQuery {
  view?: HoldView;
  q?: string | null;
  status?: HoldStatus[];
  type?: string[];
  assignee?: string[];
  group?: string[];
  role?: string[];
  priority?: string[];
  deployment?: string[];
  flow?: string[];
  run?: string[];
  instance_key?: string[];
  tag?: string[];
  text?: string | null;
  created_from?: string | Date | null;
  created_to?: string | Date | null;
  expires_from?: string | Date | null;
  expires_to?: string | Date | null;
  resolved_by?: string[];
  resolved_from?: string | Date | null;
  resolved_to?: string | Date | null;
  calendar?: string | null;
}

export interface ImportRunQuery {
  as_new_run?: boolean;
  repeat_effects?: boolean;
}

export interface ListAuditQuery {
  module?: string[];
  checkpoint?: string | null;
  execution?: string[];
  actor?: string[];
  action?: string[];
  actor_part?: string;
  action_part?: string;
  text?: string;
  order?: "newest" | "oldest";
  since?: string | Date | null;
  until?: string | Date | null;
  /** Maximum number of items. */
  limit?: number;
  cursor?: string | null;
}

export interface ListCheckpointHoldsQuery {
  view?: HoldView;
  q?: string | null;
  status?: HoldStatus[];
  type?: string[];
  assignee?: string[];
  group?: string[];
  role?: string[];
  priority?: string[];
  deployment?: string[];
  flow?: string[];
  run?: string[];
  instance_key?: string[];
  tag?: string[];
  text?: string | null;
  created_from?: string | Date | null;
  created_to?: string | Date | null;
  expires_from?: string | Date | null;
  expires_to?: string | Date | null;
  resolved_by?: string[];
  resolved_from?: string | Date | null;
  resolved_to?: string | Date | null;
  order?: HoldOrder | null;
  /** Maximum number of items. */
  limit?: number;
  cursor?: string | null;
  checkpoint_type?: string[];
  core?: string[];
  execution?: string[];
}

export interface ListCheckpointsQuery {
  node?: string | null;
  /** Maximum number of items. */
  limit?: number;
  cursor?: string | null;
}

export interface ListDeadRunsQuery {
  /** Maximum number of items. */
  limit?: number;
}

export interface ListDocumentsQuery {
  /** Maximum number of items. */
  limit?: number;
  cursor?: string | null;
}

export interface ListEventsQuery {
  after?: number;
  limit?: number;
}

export interface ListGraphCheckpointsQuery {
  graphId: string;
  runId?: string | null;
  limit?: number;
}

export interface ListHoldsQuery {
  view?: HoldView;
  q?: string | null;
  status?: HoldStatus[];
  type?: string[];
  assignee?: string[];
  group?: string[];
  role?: string[];
  priority?: string[];
  deployment?: string[];
  flow?: string[];
  run?: string[];
  instance_key?: string[];
  tag?: string[];
  text?: string | null;
  created_from?: string | Date | null;
  created_to?: string | Date | null;
  expires_from?: string | Date | null;
  expires_to?: string | Date | null;
  resolved_by?: string[];
  resolved_from?: string | Date | null;
  resolved_to?: string | Date | null;
  order?: HoldOrder | null;
  /** Maximum number of items. */
  limit?: number;
  cursor?: string | null;
}

export interface ListLeasesQuery {
  worker?: string | null;
  cursor?: string | null;
  /** Maximum number of items. */
  limit?: number;
}

export interface ListLimitsQuery {
  prefix?: string;
  keys?: boolean;
}

export interface ListMessagesQuery {
  state?: ("claimed" | "completed" | "dead" | "expired" | "ready" | "withdrawn")[];
  type?: string | null;
  correlation_id?: string | null;
  /** Maximum number of items. */
  limit?: number;
  cursor?: string | null;
}

export interface ListNoticesQuery {
  state?: "failed" | "sent" | "unneeded" | "waiting";
  /** Maximum number of items. */
  limit?: number;
  cursor?: string | null;
}

export interface ListPendingRunsQuery {
  thread?: string | null;
  mine?: boolean;
  /** Maximum number of items. */
  limit?: number;
  cursor?: string | null;
}

export interface ListRecordsQuery {
  /** The number of the first record. */
  first?: number;
  limit?: number;
}

export interface ListRunsQuery {
  status?: RunStatus[];
  flow?: string | null;
  version?: string | null;
  thread?: string | null;
  forked_from?: string | null;
  parent_run?: string | null;
  instance_key?: string | null;
  q?: string | null;
  /** Maximum number of items. */
  limit?: number;
  cursor?: string | null;
}

export interface ListSchedulesQuery {
  /** Maximum number of items. */
  limit?: number;
  cursor?: string | null;
}

export interface ListSkillsQuery {
  name?: string | null;
}

export interface ListThreadRunsQuery {
  status?: RunStatus[];
  /** Maximum number of items. */
  limit?: number;
  cursor?: string | null;
}

export interface ListThreadsQuery {
  /** Maximum number of items. */
  limit?: number;
  cursor?: string | null;
}

export interface ListViewQuery {
  /** Maximum number of items. */
  limit?: number;
  cursor?: string | null;
}

export interface ListViewsQuery {
  counts?: boolean;
}

export interface LoadGraphCheckpointQuery {
  nodeId?: string | null;
}

export interface NextOfScheduleQuery {
  count?: number;
}

export interface ResumeRunQuery {
  checkpoint_id?: string | null;
  mode?: "fork" | "resume" | "rewind" | null;
}

export interface StreamHoldsQuery {
  after?: number | null;
}

export interface StreamPipelineQuery {
  /** Only events with a higher id. */
  after?: number;
}

export interface StreamRunQuery {
  /** Only events with a higher number. */
  after?: number;
  /** Only events with a higher number. */
  after_sequence?: number;
  names?: EventNames | null;
}

export interface ActivateFlow {
  version: string;
}

/** `value`: an option's key, label or target, `yes` or `no`, or `skipped`; `text`: free words. */
export interface AnswerQuestion {
  value?: string;
  text?: string;
  comment?: string | null;
}

/** `json_schema`: what `response_data` must be; none: any object. `request_hash`: of what is shown. */
export interface AnswerSchema {
  json_schema: unknown;
  request_hash: string;
  decisions: string[] | null;
}

/** `decision`: of the hold; null if it was skipped. */
export interface AnswerTaken {
  id: string;
  status: string;
  decision: string | null;
  resolved_by: string | null;
}

/** `nodes` by id; of a graph, a node inside of another one has its name in front: `each/pay`. */
export interface Arrangement {
  nodes: Record<string, NodeBoxWire>;
}

/** `digest`: of its blob, for a large one. `size`: the bytes of the download. */
export interface ArtifactWire {
  name: string;
  media_type: string;
  size: number;
  digest?: string | null;
}

/** `to`: requester, agent, or a colleague as `user:NAME`. */
export interface AskBack {
  text: string;
  /** Default: requester. */
  to?: string;
}

export interface AssigneeWire {
  type: string;
  value: string;
  reason?: string;
}

/** One attempt. `worker`: empty if no record names it; `term` is the number of its claim of the run. */
export interface AttemptSpanWire {
  number: number;
  reason: string;
  started_at: string;
  ended_at: string | null;
  term: number;
  worker: string;
  error: Record<string, string> | null;
  traceback: string;
}

/** One more attempt and why. `error`: that of the attempt before it. `seq`: the record that began it. */
export interface AttemptWire {
  reason: string;
  attempt: number;
  at: string;
  error: Record<string, string> | null;
  wake_at: string | null;
  seq?: number;
}

/** The head of the audit: keep it where users with access to the store cannot change it. */
export interface AuditHead {
  tenant: string;
  seq: number;
  hash: string;
  at: string | null;
}

/** `problem`: none, or edited, removed, reordered, truncated, at record `seq`. */
export interface AuditVerification {
  tenant: string;
  whole: boolean;
  records: number;
  problem: string | null;
  seq: number | null;
  why: string;
}

/**
 * `hash` covers the previous hash, these fields and the digest of `data`: one chain per tenant. `text`:
 * the record as one sentence, with the question for callers who may see all holds; it is not covered.
 */
export interface AuditWire {
  id: string;
  seq: number;
  type: string;
  module: string;
  tenant: string;
  checkpoint_id: string | null;
  execution_id: string | null;
  at: string;
  actor: string;
  action: string;
  text: string;
  data: unknown;
  data_digest: string;
  prev_hash: string;
  hash: string;
}

export interface AwayWire {
  substitute: string;
  since?: string | null;
  until?: string | null;
}

export interface BeginSession {
  token: string;
}

/** An entity that stays taken: its run was stopped at `since`, and the code of `nodes` still runs. */
export interface BlockedEntityWire {
  entity: string;
  run: string;
  flow: string;
  nodes: string;
  since: string;
}

/**
 * From a checkpoint, by its id or the number of its record; without, from the current position. `patch`
 * has the partitions input, scratch and artifacts, each merged key by key. `repeat_effects`: a branch
 * that starts before a question, because it is asked again, may repeat work with outside effects; else
 * 409.
 */
export interface BranchRun {
  checkpoint_id?: string | null;
  seq?: number | null;
  input_data?: Record<string, unknown> | null;
  patch?: Record<string, unknown> | null;
  /** Default: false. */
  repeat_effects?: boolean;
}

/**
 * `preview`: change nothing. `undo`: each is decided after its undo window, as with `place`. `versions`:
 * those that were shown; holds that changed are left out.
 */
export interface BulkAnswer {
  holds: string[];
  decision: string;
  comment?: string | null;
  /** Default: true. */
  preview?: boolean;
  /** Default: false. */
  undo?: boolean;
  versions?: Record<string, number>;
}

/** `placed_until`: when it is decided; it can be undone until then. */
export interface BulkItemWire {
  hold: string;
  done: boolean;
  code?: string | null;
  why?: string | null;
  status?: string | null;
  version?: number | null;
  placed_until?: string | null;
}

/**
 * `dead`: it is a dead letter. `text`: in a preview what would happen to it, as sentences; empty
 * where too much history would have to be read for that.
 */
export interface BulkRunItem {
  run: string;
  done: boolean;
  status?: string | null;
  code?: string | null;
  why?: string | null;
  dead?: boolean;
  text?: string[];
}

/**
 * `preview`: change nothing. `retry`: failed and interrupted runs, dead letters too, resume from their
 * last checkpoint. `discard`: dead letters are cancelled.
 */
export interface BulkRuns {
  runs: string[];
  action: "cancel" | "discard" | "retry";
  reason?: string | null;
  /** Default: true. */
  preview?: boolean;
}

/** In a preview `done` is the number of runs that would be changed. */
export interface BulkRunsResult {
  preview: boolean;
  done: number;
  left_out: Record<string, number>;
  items: BulkRunItem[];
}

/** `left_out`: number by reason. In a preview `done` is the number that would be decided. */
export interface BulkWire {
  preview: boolean;
  done: number;
  left_out: Record<string, number>;
  items: BulkItemWire[];
}

/** A sub-step: a tool call, a model call, a memory read. */
export interface CallWire {
  name: string;
  effect: "" | "pure" | "read" | "write" | "external" | "human";
  at: string;
  seq: number;
  value: unknown;
  error: Record<string, string> | null;
  tokens: number;
  cost: number;
  traceback?: string;
}

/**
 * `status`: waiting, completed or failed. `expires_at`: then the run gives it up; a heartbeat makes it
 * later where the run asks for heartbeats.
 */
export interface CallbackWire {
  name: string;
  status: string;
  expires_at: string | null;
}

export interface CancelPipeline {
  /** Default: cancelled. */
  reason?: string;
}

export interface CancelRun {
  /** Default: cancelled. */
  reason?: string;
}

/** The person of this chat user: `user:dana@acme`. */
export interface ChatPerson {
  person: string;
}

/** A checkpoint with its state. Values that are declared secret are hidden. */
export interface CheckpointDetail {
  id: string;
  run_id: string;
  flow_id: string;
  version: string;
  node_id: string;
  seq: number;
  status: CheckpointStatus;
  created_at: string;
  state_size: number;
  has_memory_snapshot?: boolean;
  turn?: number | null;
  pending_input_context?: PendingContext | null;
  parent_id: string | null;
  original_input: unknown;
  node_states: Record<string, NodeState>;
  completed_node_ids: string[];
  skipped_node_ids: string[];
  pending_edges: string[];
  pending_inputs: PendingContext[];
  state: unknown;
  artifacts: unknown;
  diagnostics: Record<string, unknown>;
  visits: Record<string, number>;
  retries: Record<string, number>;
  loops: Record<string, number>;
  goal_gates: Record<string, boolean>;
  memory?: unknown;
  agents?: Record<string, unknown>;
  lineage?: Record<string, unknown>;
}

export type CheckpointStatus = "active" | "completed" | "failed" | "pending_input";

/** A checkpoint without its state. */
export interface CheckpointSummary {
  id: string;
  run_id: string;
  flow_id: string;
  version: string;
  node_id: string;
  seq: number;
  status: CheckpointStatus;
  created_at: string;
  state_size: number;
  has_memory_snapshot?: boolean;
  turn?: number | null;
  pending_input_context?: PendingContext | null;
}

/**
 * A hold under the names of the documents, on the paths that they name. `core_id`: its deployment, or
 * `flow:NAME` if it was started without one.
 */
export interface CheckpointWire {
  id: string;
  block_index: number;
  instance_key: string | null;
  prompt: string;
  options: OptionWire[] | null;
  assignee_type: string;
  assignee_resolved: AssigneeWire;
  context: unknown;
  schema: unknown;
  priority: "low" | "normal" | "high" | "critical";
  tags: string[];
  status: string;
  expires_at: string | null;
  expiry_action: string | null;
  escalation_target: string | null;
  notification_sent: boolean;
  reminder_count: number;
  reminder_interval_m: number | null;
  resolution: Record<string, unknown> | null;
  resolved_by: string | null;
  resolved_at: string | null;
  created_at: string;
  updated_at: string;
  version: number;
  assignment_epoch: number;
  last_notified_at: string | null;
  claimed_by: string | null;
  claim_until: string | null;
  resumed_at: string | null;
  request_hash: string;
  escalation_count: number;
  original_timeout_s: number | null;
  cancelled_by: string | null;
  cancelled_at: string | null;
  cancel_reason: string | null;
  placed_by: string | null;
  placed_decision: string | null;
  placed_until: string | null;
  paused_at: string | null;
  started_by: string | null;
  terms: Record<string, unknown>;
  title?: string;
  why?: string;
  due?: string;
  decided?: DecidedValueWire[];
  idempotent_replay?: boolean;
  core_id: string;
  tenant_id: string;
  execution_id: string;
  flow_name: string;
  node_id: string;
  checkpoint_type: string;
  assignee_raw: string | null;
  hitl_message_id: string | null;
}

export interface CircleWire {
  key: string;
  name: string;
  members: string[];
}

/** `reason`: uses the right to override if another person has claimed it. */
export interface ClaimHold {
  seconds?: number | null;
  reason?: string | null;
}

export interface ClaimMessage {
  ttl?: string | null;
}

/** `wait`: at most this many seconds, until there is a message. `ttl`: how long the claim lasts. */
export interface ClaimMessages {
  /** Default: 1. */
  limit?: number;
  /** Default: 0. */
  wait?: number;
  ttl?: string | null;
}

export interface ClaimedMessages {
  items: MessageWire[];
}

/** `result`: what the run gets. Or `error`: what went wrong; the run gets an error with it and `data`. */
export interface CompleteCallback {
  result?: unknown;
  error?: string | null;
  data?: unknown;
}

/** `result`: any JSON. For a review request `{decision, response_data, comment}`: it decides the hold. */
export interface CompleteMessage {
  /** `claim_token` of the claim. */
  token: string;
  result?: unknown;
}

/** One of `holds`, `run` and `flow`. `clear`: these runs stop at no later breakpoint either. */
export interface ContinueBreakpoints {
  holds?: string[] | null;
  run?: string | null;
  flow?: string | null;
  /** Default: false. */
  clear?: boolean;
  /** Default: false. */
  preview?: boolean;
}

/**
 * A tool call. `arguments`: as the model gave them. `hold`: the question whether it may run, if there is
 * one.
 */
export interface ConversationCall {
  id: string;
  tool: string;
  arguments?: unknown;
  hold?: string | null;
}

/**
 * `role`: system, user, assistant or tool. `call`: of a tool's result, the id of its call. The text of a
 * tool comes from outside: it is not checked. `omitted`: it is too large to be here; the step of the run
 * has it.
 */
export interface ConversationMessage {
  role: string;
  turn: number;
  text?: string;
  calls?: ConversationCall[];
  call?: string;
  failed?: boolean;
  omitted?: boolean;
}

/** Counting stops at 10,000. */
export interface Count {
  count: number;
}

/**
 * `flow`: a name, `name@version`, or a file that the operator allows; `workflow_uri` is the same.
 * `wait`: at most this many seconds, until the run has ended or waits for a person.
 */
export interface CreateRun {
  flow?: string | null;
  workflow_uri?: string | null;
  version?: string | null;
  input?: Record<string, unknown>;
  thread?: string | null;
  lane?: string | null;
  priority?: number | null;
  instance_key?: string | null;
  deployment?: string | null;
  mode?: "barrier" | "exit" | "strict" | null;
  breaks?: string[];
  idempotency_key?: string | null;
  /** Seconds to wait until it ends or waits. Default: 0. */
  wait?: number;
}

export interface CreateToken {
  subject: string;
  roles?: string[];
  rights?: Right[];
  groups?: string[];
  /** Default: in 90 days. */
  expires_at?: string | null;
  /** Default: false. */
  never_expires?: boolean;
  note?: string;
}

/** `token`: of the claim; needed while the message is claimed. */
export interface DeadMessage {
  token?: string | null;
  error?: string | null;
}

export interface DeadNotice {
  id: number;
  at: string | null;
  topic: string;
  hold_id: string | null;
  attempts: number;
  error: string | null;
}

/** `suspects`: nodes by how often they were running when a worker stopped heartbeating. */
export interface DeadRunWire {
  run: RunWire;
  deaths: DeathWire[];
  suspects: Record<string, number>;
}

export interface DeathWire {
  worker: string;
  at: string | null;
  head: number;
  status: string;
  nodes: string[];
  unknown: string;
}

/** A value of a decision. `proposed`: what the machine proposed; `edited`: decided with another value. */
export interface DecidedValueWire {
  field: string;
  label: string;
  value: unknown;
  proposed?: unknown;
  edited?: boolean;
}

/** Defaults for holds that do not set these themselves. Durations as written. */
export interface Defaults {
  assignee?: string | null;
  priority?: string | null;
  calendar?: string | null;
  timeout?: string | null;
  on_timeout?: string | null;
  reminder?: string | null;
}

/** `to`: `user:NAME`; `seconds`: its duration. */
export interface DelegateDeployment {
  to: string;
  seconds?: number | null;
}

export interface DelegationWire {
  to: string;
  since: string | null;
  until: string | null;
  revoked: boolean;
}

export interface DeploymentWire {
  id: string;
  name: string;
  flow: string;
  version: string;
  mode: string;
  skills: string[];
  policies: string[];
  defaults: Defaults;
  delegation: DelegationWire | null;
  created_at: string | null;
  created_by: string;
}

/** `line` and `column` count from 1; 0: no position. */
export interface DiagnosticWire {
  rule: string;
  severity: string;
  message: string;
  node?: string;
  edge?: string[] | null;
  fix?: string;
  line?: number;
  column?: number;
}

/**
 * From a version to another one, or to a document or its text, which need not be deployed. `current` is
 * the current version.
 */
export interface DiffFlow {
  /** A version, or `current`. Default: current. */
  from?: string;
  to?: string | null;
  document?: Record<string, unknown> | null;
  source?: string | null;
  /** Default: yaml. */
  format?: "json" | "yaml";
}

/** `was`: what happened. `would_be`: under the rules. `field`: rule, assignee, approval, deadline, ... */
export interface Difference {
  field: string;
  was: string;
  would_be: string;
}

/** `unread`: its history will not show which effects were running. */
export interface DiscardDead {
  /** Default: discarded. */
  reason?: string;
  /** Default: false. */
  unread?: boolean;
}

/** An answer that may be incomplete. */
export interface DraftWire {
  decision?: unknown;
  response_data?: unknown;
  comment?: unknown;
  request_hash?: string | null;
}

export interface EdgeLayout {
  label?: string;
  ui?: unknown;
}

/** `source`: the text of the draft; without a draft, that of the current version. */
export interface EditableDocument {
  name: string;
  format: "json" | "yaml";
  saved_by: string | null;
  saved_at: string | null;
  version: string | null;
  source: string;
}

/**
 * A piece of live output: `ctx.emit` and `ctx.log`. `kind`: `text`, `log`, `progress`, ... `attempt`:
 * whose it is; text of an earlier attempt than the last is void.
 */
export interface EmittedWire {
  kind: string;
  at: string;
  data: unknown;
  attempt?: number;
}

/** An entry of a hold's history. `text`: as one sentence; `seq`: its number in the tenant's audit. */
export interface EntryWire {
  id: string;
  seq: number;
  at: string;
  actor: string;
  action: string;
  data: Record<string, unknown>;
  text: string;
}

/** `own`: `checkpoint.created`, `hold.opened`, ... `seed`: `checkpoint_created`, `approval`, ... */
export type EventNames = "own" | "seed";

/**
 * `next`: send it as `after` for the next page; none: the run has ended with this event.
 * `last`: the number of the last event. `ended`: no more events will follow.
 */
export interface EventPage {
  items: EventWire[];
  next: number | null;
  last: number;
  ended: boolean;
}

/** `number` grows by one with each event of a run; it is the event's id in the stream. */
export interface EventWire {
  run: string;
  number: number;
  at: string | null;
  type: string;
  node: string;
  scope: string;
  data: Record<string, unknown>;
}

export interface ExtendHold {
  /** RFC 3339, with its zone. */
  expires_at: string;
  reason?: string | null;
}

export interface ExtendMessage {
  /** `claim_token` of the claim. */
  token: string;
  ttl?: string | null;
}

/** Runs that ended with the same error, newest first. `node`: where the newest failed. */
export interface FailureWire {
  error: string;
  node: string;
  runs: string[];
  last_at: string | null;
}

/**
 * At one moment, over all tenants. Lags: the age of the oldest item that is due. `suspects`: runs that
 * lost two workers in a row without progress. `timers`: waits for a time.
 */
export interface FiguresWire {
  at: string;
  lanes: LaneWire[];
  statuses: Record<string, number>;
  dead: number;
  pending_holds: number;
  oldest_hold_seconds: number;
  timer_lag_seconds: number;
  hold_lag_seconds: number;
  schedule_lag_seconds: number;
  outbox_waiting: number;
  outbox_dead: number;
  suspects: number;
  timers: number;
  next_timer_seconds: number | null;
  unserved_runs: UnservedRunsWire[];
  unserved_schedules: UnservedSchedulesWire[];
}

/** A file of a hold. `file` is what the answer has in the field. */
export interface FileWire {
  field: string;
  file: Record<string, unknown>;
}

/**
 * A range of the past, both ends included. `one_by_one`: each run starts when the one before it has
 * ended.
 */
export interface FillSchedule {
  first: string;
  last: string;
  /** Default: false. */
  one_by_one?: boolean;
  /** Default: false. */
  dry_run?: boolean;
}

/** AND across the fields, OR within each. `q`: words as in the inbox, `priority>=high due<2d refund`. */
export interface Filters {
  /** Default: all. */
  view?: HoldView;
  q?: string | null;
  status?: HoldStatus[];
  type?: string[];
  assignee?: string[];
  group?: string[];
  role?: string[];
  priority?: string[];
  deployment?: string[];
  flow?: string[];
  run?: string[];
  instance_key?: string[];
  tag?: string[];
  text?: string | null;
  created_from?: string | null;
  created_to?: string | null;
  expires_from?: string | null;
  expires_to?: string | null;
  resolved_by?: string[];
  resolved_from?: string | null;
  resolved_to?: string | null;
}

/** What became of an instant. `last`: the last of several that were missed; `instant` is the first. */
export interface FiringWire {
  instant: string | null;
  at: string | null;
  outcome: "failed" | "filled" | "missed" | "skipped" | "started" | "triggered";
  run: string | null;
  reason: string;
  last: string | null;
}

/** `kind`: added, removed or changed; `path` such as `config.timeout`. */
export interface FlowChange {
  path: string;
  kind: string;
  before?: unknown;
  after?: unknown;
}

/** For each active run on another version, whether it fits this one. Nothing is changed. */
export interface FlowCheck {
  flow: string;
  version: string;
  fits: number;
  breaks: number;
  runs: RunFitWire[];
}

/** `same`: both mean the same. `reordered`: the nodes stand in another order. `settings`: other keys. */
export interface FlowDiff {
  same: boolean;
  nodes: FlowPartDiff[];
  edges: FlowPartDiff[];
  settings: FlowChange[];
  layout: FlowChange[];
  reordered: boolean;
}

/**
 * `graph`: nodes, edges and policies, the common form of every front end. Of a document that was just
 * sent: `problems`, its warnings; `current`, whether new runs start on it; `stored`, false after a dry run.
 */
export interface FlowGraph {
  name: string;
  version: string;
  label: string;
  created_at: string;
  graph: Record<string, unknown>;
  current?: boolean | null;
  stored?: boolean;
  problems?: FlowProblem[];
}

/** How a document is drawn: `nodes` by id, `edges` by id or `source:port->target`. */
export interface FlowLayout {
  nodes?: Record<string, NodeLayout>;
  edges?: Record<string, EdgeLayout>;
  label?: string;
  notes?: Record<string, unknown>[];
  groups?: Record<string, unknown>[];
  ui?: unknown;
}

export interface FlowMismatchWire {
  node: string;
  why: string;
  fix: string;
  soft: boolean;
}

/** A node or an edge; `before` and `after`: the whole of it, without layout. */
export interface FlowPartDiff {
  id: string;
  change: string;
  before: Record<string, unknown> | null;
  after: Record<string, unknown> | null;
  changes: FlowChange[];
}

/**
 * Of a document also its place: `path` is a JSON Pointer, `field` the same for people, `line` and
 * `column` count from 1.
 */
export interface FlowProblem {
  rule: string;
  severity: string;
  message: string;
  node?: string | null;
  edge?: string | null;
  fix?: string | null;
  path?: string | null;
  field?: string | null;
  line?: number | null;
  column?: number | null;
}

/**
 * Of the latest `runs` runs. `nodes`: in the order in which they were first visited. `failures`: the most
 * frequent first.
 */
export interface FlowStatisticsWire {
  flow: string;
  runs: number;
  nodes: NodeStatisticsWire[];
  failures: FailureWire[];
}

/**
 * `valid`: no problem is an error. `version`: the fingerprint that it would have. `ports`: where
 * edges may leave each node of a document.
 */
export interface FlowValidation {
  valid: boolean;
  name: string;
  version: string;
  problems: FlowProblem[];
  ports?: Record<string, string[]>;
}

/**
 * `loaded`: this server has its code. `workers`: number of live workers that have it. `current`: new runs
 * start on it, if they name no version. `document`: it was deployed as a document.
 */
export interface FlowVersion {
  version: string;
  label: string;
  created_at: string;
  nodes: number;
  loaded: boolean;
  workers: number;
  current?: boolean;
  document?: boolean;
}

/**
 * Versions, newest first. `description`: what it does, if this server has its code. `input_schema`: the
 * JSON Schema of the input that its newest version takes.
 */
export interface FlowWire {
  name: string;
  versions: FlowVersion[];
  description?: string;
  input_schema?: Record<string, unknown>;
}

/** Visits inside a visit. `within`: names them for another page. `items`: of a map, or branches. */
export interface FoldedVisits {
  within: string;
  visits?: number;
  items?: number;
  done?: number;
  failed?: number;
  open?: number;
}

/**
 * `patch`: changes of `input`, `scratch`, `artifacts` and `diagnostics`, each merged key by key.
 * `repeat_effects`: as for `POST /runs/{run}/fork`.
 */
export interface ForkGraphCheckpoint {
  patch?: Record<string, unknown> | null;
  /** Default: false. */
  repeat_effects?: boolean;
}

/**
 * `content`: the id or the label of an option, a free text if the question allows it, or an object
 * `{decision, response_data, comment}`. `request_id` or `checkpoint_id`: which question.
 */
export interface GiveInput {
  content: string | Record<string, unknown>;
  request_id?: string | null;
  checkpoint_id?: string | null;
}

/**
 * A run at a node boundary. `timestamp`: milliseconds since 1970. `visitedNodes`: completed nodes in
 * order; `skippedNodes`: bypassed by routing; `pendingEdges`: taken, the target not started.
 */
export interface GraphCheckpoint {
  id: string;
  graphId: string;
  runId: string;
  nodeId: string;
  timestamp: number;
  state: GraphState;
  nodeResults: Record<string, GraphNodeResult>;
  visitedNodes: string[];
  pendingEdges: string[];
  skippedNodes?: string[];
  memorySnapshot?: GraphMemory;
}

/** Without its state. `stateSize`: the bytes that it added to the store. */
export interface GraphCheckpointMetadata {
  id: string;
  runId: string;
  graphId: string;
  nodeId: string;
  timestamp: number;
  stateSize: number;
  hasMemorySnapshot: boolean;
}

/** `pendingWrites`: those that were not committed yet. */
export interface GraphMemory {
  reads: GraphMemoryRead[];
  pendingWrites: GraphMemoryWrite[];
}

export interface GraphMemoryRead {
  traceId: string;
  content: string;
  strength: number;
}

export interface GraphMemoryWrite {
  type: string;
  content: string;
  scope: string;
}

export interface GraphNodeResult {
  effectClass: "external" | "human" | "pure" | "read" | "write";
  output: unknown;
  durationMs: number;
}

export interface GraphRun {
  runId: string;
}

/** The partitions of the state. Values that are declared secret are hidden. */
export interface GraphState {
  input: unknown;
  scratch: unknown;
  artifacts: unknown;
  diagnostics: Record<string, unknown>;
}

/** `flat`: nodes inside others are named without their path, as stages of a pipeline are. */
export interface GraphWire {
  version: string;
  flat: boolean;
  picture: PlacedPicture;
}

/**
 * `{decision, response_data, comment}` or `{resolution, comment}`, where `resolution` is the decision or
 * an object that has it. `request_hash`: of what was shown. `reason`: uses the right to override.
 */
export interface HoldAnswer {
  decision?: string | null;
  resolution?: string | Record<string, unknown> | null;
  response_data?: unknown;
  comment?: string | null;
  request_hash?: string | null;
  reason?: string | null;
}

/**
 * `turn`: the turn in which the question was asked. `left_out`: older messages that are not listed. A
 * hold that no agent asked has no messages.
 */
export interface HoldConversation {
  hold: string;
  agent?: string;
  turn?: number;
  messages?: ConversationMessage[];
  left_out?: number;
}

/** Rates are between 0 and 1; None without data. Breakpoints do not count. */
export interface HoldMetrics {
  holds: number;
  pending_by_queue: Record<string, number>;
  pending_by_priority: Record<string, number>;
  pending_by_age: Record<string, number>;
  time_to_view: Spread;
  time_to_claim: Spread;
  time_to_decision: Spread;
  resume_lag: Spread;
  breach_rate: number | null;
  reminder_rate: number | null;
  escalation_rate: number | null;
  expiry_rate: number | null;
  auto_rate: number | null;
  late_rate: number | null;
  conflict_rate: number | null;
  notifier_failures: number;
}

export type HoldOrder = "inbox" | "newest" | "oldest";

/** `record`: the record of the run from which it was made. */
export interface HoldPreview {
  hold: string;
  run: string;
  record: number;
  options: OptionPreview[];
}

/** The text of a calendar or policy. */
export interface HoldSetting {
  name: string;
  rules: unknown;
  version: number;
}

export type HoldStatus = "cancelled" | "expired" | "pending" | "resolved";

/**
 * `mine`: waits for me; `groups`: for a group or role of mine; `asked`: I was asked back;
 * `unassigned`: for no one yet (admins; `unrouted` is the same); `watching`, `snoozed`; `done`: by me;
 * `breakpoints`; `all`: whatever I may see.
 */
export type HoldView = "all" | "asked" | "breakpoints" | "done" | "groups" | "mine" | "snoozed" | "unassigned" | "unrouted" | "watching";

export interface HoldViewerWire {
  person: string;
  since: string | null;
  until: string | null;
  editing: boolean;
}

/**
 * A hold. `assignee`: as the flow names it; `assignee_resolved`: the person or group. `title`, `why` and
 * `due` are texts; `decided`: the values of its decision; `version` is its ETag. `comments`: how many there
 * are, with questions and replies; in lists only. `snoozed_until`: by you; in the list of snoozed holds
 * only. `shadow`: what a judge answered before the question was
 * shown, for one hold only.
 */
export interface HoldWire {
  id: string;
  block_index: number;
  instance_key: string | null;
  prompt: string;
  options: OptionWire[] | null;
  assignee_type: string;
  assignee_resolved: AssigneeWire;
  context: unknown;
  schema: unknown;
  priority: "low" | "normal" | "high" | "critical";
  tags: string[];
  status: string;
  expires_at: string | null;
  expiry_action: string | null;
  escalation_target: string | null;
  notification_sent: boolean;
  reminder_count: number;
  reminder_interval_m: number | null;
  resolution: Record<string, unknown> | null;
  resolved_by: string | null;
  resolved_at: string | null;
  created_at: string;
  updated_at: string;
  version: number;
  assignment_epoch: number;
  last_notified_at: string | null;
  claimed_by: string | null;
  claim_until: string | null;
  resumed_at: string | null;
  request_hash: string;
  escalation_count: number;
  original_timeout_s: number | null;
  cancelled_by: string | null;
  cancelled_at: string | null;
  cancel_reason: string | null;
  placed_by: string | null;
  placed_decision: string | null;
  placed_until: string | null;
  paused_at: string | null;
  started_by: string | null;
  terms: Record<string, unknown>;
  title?: string;
  why?: string;
  due?: string;
  decided?: DecidedValueWire[];
  idempotent_replay?: boolean;
  run: string;
  flow: string;
  node: string;
  tenant: string;
  deployment: string | null;
  type: string;
  assignee: string | null;
  message_id: string | null;
  comments?: number;
  snoozed_until?: string;
  shadow?: ShadowWire;
}

/** The question that was answered, and how. */
export interface InputTaken {
  run_id: string;
  checkpoint_id: string;
  request_id: string;
  status: string;
  decision?: unknown;
  resolved_by?: string | null;
  resolved_at?: string | null;
}

export interface Instants {
  items: string[];
}

/** An earlier head: it must be part of the chain. */
export interface KnownHead {
  seq: number;
  hash: string;
}

/** `limited`: ready runs that wait for a limit. */
export interface LaneWire {
  lane: string;
  ready: number;
  running: number;
  limited: number;
  oldest_seconds: number;
}

/**
 * A run that a process has now. `until`: another worker may take it over from then on, unless its process
 * renews the lease. `term`: how often the run was claimed. `expired`: it was not renewed.
 */
export interface LeaseWire {
  run: string;
  flow: string;
  version: string;
  tenant: string;
  status: RunStatus;
  worker: string;
  term: number;
  until: string | null;
  expired: boolean;
  recoveries: number;
}

/**
 * `fixed`: an operator set it; else the flow declares it. `items:KEY` is a limit that items of maps share
 * (`limit_key=`): `running` and `waiting` count items, `holders` and `waiters` have the run of each, in the
 * order in which they got, or get, their places.
 */
export interface LimitWire {
  name: string;
  concurrency: number | null;
  rate: string | null;
  fixed: boolean;
  running: number;
  waiting: number;
  holders: string[];
  waiters: string[];
}

/**
 * `way`: what the link allows: decide, login (sign in first) or view. `sent_to`: the addresses to which
 * it is sent. Only for a link of your own: `token`, the part of the link after `#`, and `path`, below the
 * server's address.
 */
export interface LinkWire {
  way: string;
  sent_to?: string[];
  token?: string | null;
  path?: string | null;
}

/**
 * What a run waits for that no person answers: an event with this name and key, a callback of this
 * name, the end of a child run, or a message of a queue. `until`: then the wait is over; a heartbeat of a
 * callback makes it later.
 */
export interface MachineWait {
  event?: string | null;
  callback?: string | null;
  key?: string | null;
  run?: string | null;
  queue?: string | null;
  until?: string | null;
}

/**
 * `outcome`: resolved, voted, unclear (nothing was decided, and the sender got the reason), refused or
 * ignored (nothing was decided, and no one was notified), or duplicate (it came before).
 */
export interface MailTaken {
  outcome: string;
  why?: string;
  checkpoint_id?: string | null;
}

/** A record that readers look for. `kind`: failed, decided or resumed. */
export interface MarkWire {
  kind: string;
  seq: number;
  at: string;
  node: string;
  worker: string;
}

/**
 * `attempts`: claims that ended without completion. `claim_token`: only for the worker that claimed
 * it.
 */
export interface MessageWire {
  id: string;
  tenant: string;
  scope: string;
  queue: string;
  type: string;
  correlation_id: string | null;
  priority: string;
  group_key: string | null;
  payload: unknown;
  state: "claimed" | "completed" | "dead" | "expired" | "ready" | "withdrawn";
  attempts: number;
  max_attempts: number;
  claimed_by: string | null;
  claim_token: string | null;
  claim_until: string | null;
  result: unknown;
  completed_by: string | null;
  run: string | null;
  node: string | null;
  hold: string | null;
  error: string | null;
  visible_at: string;
  expires_at: string | null;
  created_at: string;
  updated_at: string;
  ended_at: string | null;
}

/** `at`: the begin of the step. `values`: one for each column; null: nothing to measure. */
export interface MetricPoint {
  at: string;
  values: (number | null)[];
}

/** `read_since`: older holds or runs exist and were not read, so that earlier points are too low. */
export interface MetricWire {
  name: string;
  unit: string;
  step_seconds: number;
  columns: string[];
  points: MetricPoint[];
  read_since?: string | null;
}

export interface NewComment {
  text: string;
}

/** `to`: one person, `user:NAME`. `decide`: whether it may decide, as far as the hold allows links to. */
export interface NewLink {
  to: string;
  /** Default: true. */
  decide?: boolean;
  /** Default: 604800. */
  seconds?: number;
}

/** `filters`: as for `GET /v1/holds`. `shared`: visible to the whole tenant. */
export interface NewView {
  title: string;
  filters: Filters;
  order?: HoldOrder | null;
  /** Default: false. */
  shared?: boolean;
}

/** `x`, `y`: its upper left corner, from that of the node around it. */
export interface NodeBoxWire {
  x: number;
  y: number;
  width: number;
  height: number;
}

export interface NodeLayout {
  label?: string;
  position?: Record<string, unknown> | null;
  ui?: unknown;
}

/** The last execution of a node. `status`: success, partial_success, fail, skip, cancelled or unknown. */
export interface NodeState {
  status: string;
  output_data?: unknown;
  effect?: string;
  visit?: number;
  attempt?: number;
  seq?: number | null;
  ended_at?: string | null;
  duration_ms?: number;
  tokens?: number;
  cost?: number;
  error?: Record<string, unknown> | null;
}

/**
 * `failed_runs`, `retried_runs`: newest first. `p50_ms`, `p95_ms`: from the start of a visit to its end,
 * with waits. `p50_run`, `p95_run`: a run with a visit that took so long. `waiting`: visits that wait now
 * for a person, a time or a retry; `waited_p50_ms`: half of those that waited had no more.
 */
export interface NodeStatisticsWire {
  node: string;
  visits: number;
  failed: number;
  retries: number;
  failed_runs: string[];
  p50_ms: number | null;
  p95_ms: number | null;
  retried_runs?: string[];
  p50_run?: string;
  p95_run?: string;
  waiting?: number;
  waiting_runs?: string[];
  waited_p50_ms?: number | null;
  waited_run?: string;
}

export interface NodeTotals {
  state: string;
  visits: number;
  open: number;
  done: number;
  failed: number;
  retries: number;
  work_ms: number;
  tokens: number;
  cost: number;
}

/** A comment, a question that was asked back, or a reply. */
export interface NoteWire {
  id: string;
  kind: string;
  by: string;
  at: string | null;
  text?: string;
  to?: string | null;
  question?: string | null;
  open?: boolean | null;
}

/** `reminders`: of holds that still wait; `outcomes`: outcomes of holds that they were notified about. */
export interface NoticeChoices {
  /** Default: true. */
  reminders?: boolean;
  /** Default: true. */
  outcomes?: boolean;
}

/** `due_at`: of a notification that waits, the time of its next attempt. */
export interface NoticeWire {
  id: number;
  at: string | null;
  topic: string;
  hold_id: string | null;
  attempts: number;
  error: string | null;
  state: string;
  due_at: string | null;
}

/** `url`: to POST to; it, or `token`, is all that the sender needs. */
export interface OpenCallback {
  name: string;
  status: string;
  expires_at: string | null;
  hold: string;
  node: string;
  token: string;
  url: string;
}

export interface OpenCallbacks {
  items: OpenCallback[];
}

export interface OptionPreview {
  option: string;
  label: string;
  entries: PreviewEntry[];
}

/** `text`: the label for people; a label that is only the id as words. The documents' paths have none. */
export interface OptionWire {
  id: string;
  label: string;
  text?: string;
  variant?: string;
  default?: boolean;
  requires_comment?: boolean;
}

/** `next` is the cursor of the next page; without it this was the last. */
export interface Page<T> {
  items: T[];
  next?: string | null;
}

export interface PauseSchedule {
  reason?: string;
}

/** A question that was open then. */
export interface PendingContext {
  request_id: string;
  node_id: string;
  prompt: string;
  timestamp: string;
  type?: string;
  options?: unknown;
  assignee?: string | null;
  expires_at?: string | null;
}

/** A run that waits for a person, and its question. */
export interface PendingWire {
  run: string;
  flow: string;
  thread: string | null;
  hold_id: string;
  node: string;
  prompt: string;
  assignee: string | null;
  created_at: string;
}

export interface PersonWire {
  id: string;
  email: string;
  name: string;
  active: boolean;
  away: AwayWire | null;
  language: string;
  zone: string;
}

/**
 * `status` is the run's; `outcome` is success, fail or cancelled once it has ended. `current_node` is the
 * last completed one. `completed_nodes` are in order: one that was visited twice is listed twice. `missing`:
 * what it needs of a worker and no live one has.
 */
export interface PipelineWire {
  id: string;
  name: string;
  goal: string;
  status: RunStatus;
  outcome: string | null;
  current_node: string;
  completed_nodes: string[];
  node_outcomes: Record<string, string>;
  node_retries: Record<string, number>;
  failure_reason: string | null;
  questions: string[];
  created_at: string | null;
  updated_at: string | null;
  ended_at: string | null;
  wakes_at?: string | null;
  missing?: string[];
  diagnostics?: DiagnosticWire[];
}

/** A decision that takes effect after `seconds`, unless it is undone; none: the hold's window. */
export interface PlaceDecision {
  decision?: string | null;
  resolution?: string | Record<string, unknown> | null;
  response_data?: unknown;
  comment?: string | null;
  request_hash?: string | null;
  reason?: string | null;
  seconds?: number | null;
}

/**
 * `path`: its curve as in SVG, from `x`, `y`; `head_x`, `head_y`: the point of its arrow. `id`: empty for
 * the edge from the start. `label_x`, `label_y`: the middle of the label.
 */
export interface PlacedEdge {
  id: string;
  source: string;
  target: string;
  label: string;
  look: string;
  path: string;
  x: number;
  y: number;
  head_x: number;
  head_y: number;
  label_x?: number;
  label_y?: number;
}

/**
 * `id`: its path, as `child/pay`. `x`, `y`: its left upper corner. `inside`: `open` if its inside is
 * drawn within it, `closed` if it could be, else empty.
 */
export interface PlacedNode {
  id: string;
  label: string;
  shape: string;
  x: number;
  y: number;
  width: number;
  height: number;
  detail?: string;
  inside?: string;
}

/** Nodes around others come before those inside them. */
export interface PlacedPicture {
  width: number;
  height: number;
  nodes: PlacedNode[];
  edges: PlacedEdge[];
}

/** The text of a report. `format`: md or html. */
export interface PostmortemWire {
  run: string;
  format: string;
  text: string;
}

/** None: what the browser says. `shortcuts`: whether single letters are keys. */
export interface Preferences {
  language?: string | null;
  time_zone?: string | null;
  /** Default: system. */
  theme?: "dark" | "light" | "system";
  /** Default: true. */
  shortcuts?: boolean;
  notifications?: NoticeChoices;
}

export interface PresenceBeat {
  /** Default: false. */
  editing?: boolean;
}

/** `decision`: only this option. `response_data`: what was filled in; none: what the form proposes. */
export interface PreviewAnswer {
  decision?: string | null;
  response_data?: unknown;
}

/**
 * `seq`: the record to fork or rewind to; none: the last. `patch`: the state that a fork or rewind
 * changes, as they take it: then `way` says what the new run does. It needs the right runs:write.
 */
export interface PreviewChange {
  action: "cancel" | "fork" | "resume" | "retry" | "rewind";
  seq?: number | null;
  patch?: Record<string, unknown> | null;
}

/**
 * `kind`: `step` (ran, without outside effects), `effect` (would happen; what follows is unknown),
 * `question`, `sleep`, `failure`, `end` or `unknown`. `text`: the same as a sentence.
 */
export interface PreviewEntry {
  kind: string;
  text: string;
  node?: string;
  effect?: string;
  step?: string;
  key?: string;
  then?: string[];
  assignee?: string | null;
  options?: string[];
  until?: string | null;
  status?: string;
}

/** `code` is stable; `detail` says what is wrong, `hint` what to do. Further members are facts. */
export interface Problem {
  type: string;
  title: string;
  status: number;
  code: string;
  detail: string;
  hint?: string | null;
  retryable?: boolean;
  request_id?: string | null;
  errors?: Record<string, unknown>[];
}

/**
 * `id`: the message is published once for it; without one, or an `Idempotency-Key`, a new one is made.
 * `delay`: it cannot be claimed before. `expires_in`: it expires if it is not completed by then.
 * `group_key`: messages of one group are claimed one at a time, in order.
 */
export interface PublishMessage {
  payload: unknown;
  id?: string | null;
  /** Default: message. */
  type?: string;
  correlation_id?: string | null;
  /** Default: normal. */
  priority?: "critical" | "high" | "low" | "normal";
  delay?: string | null;
  expires_in?: string | null;
  group_key?: string | null;
}

export interface PublishSkill {
  instructions?: string;
  tools?: SkillTool[];
  description?: string;
  data?: Record<string, unknown>;
}

/** `substitute` may act for them meanwhile. */
export interface PutAway {
  substitute: string;
  since?: string | null;
  until?: string | null;
}

/** Exactly these members; each must be in the directory. */
export interface PutCircle {
  members: string[];
  name?: string;
}

export interface PutDeployment {
  flow: string;
  version?: string;
  /** Default: plain. */
  mode?: string;
  skills?: string[];
  policies?: string[];
  /** Default: warn. */
  on_changed_skill?: string;
  defaults?: Defaults;
}

export interface PutPerson {
  email?: string;
  name?: string;
  /** Default: true. */
  active?: boolean;
  language?: string;
  zone?: string;
}

/** Exactly one of `cron`, `every` and `at`. Missing fields have the defaults of a new schedule. */
export interface PutSchedule {
  flow: string;
  cron?: string | null;
  every?: string | null;
  at?: string | null;
  /** Default: UTC. */
  zone?: string;
  anchor?: string | null;
  start?: string | null;
  end?: string | null;
  jitter?: string | null;
  /** Default: last. */
  missed?: "all" | "last" | "skip";
  /** `15m`, `90s`, `1h30m`. Default: 1m. */
  grace?: string;
  overlap?: "allow" | "cancel" | "skip" | "wait" | null;
  input?: Record<string, unknown> | null;
  stamp?: string | null;
  lane?: string | null;
  priority?: number | null;
  thread?: string | null;
  instance_key?: string | null;
  deployment?: string | null;
  mode?: "barrier" | "exit" | "strict" | null;
}

export interface QuestionList {
  items: QuestionWire[];
}

/** `key`: its accelerator; `id`: its id in the hold. */
export interface QuestionOption {
  id: string;
  key: string;
  label: string;
  to?: string | null;
}

/**
 * `id` is the hold's: it can be decided as one too. `type`: yes_no, multiple_choice, freeform or
 * confirmation; `approval` and others for questions that are not gates.
 */
export interface QuestionWire {
  id: string;
  stage: string;
  text: string;
  type: string;
  options: QuestionOption[];
  default: string | null;
  timeout_seconds: number | null;
  created_at: string | null;
  expires_at: string | null;
  assignee: string | null;
}

/**
 * `delayed`: of the ready messages, those that cannot be claimed yet. `oldest_seconds`: how long the
 * oldest ready message could have been claimed.
 */
export interface QueueWire {
  tenant: string;
  scope: string;
  queue: string;
  ready: number;
  delayed: number;
  claimed: number;
  dead: number;
  oldest_seconds: number;
}

export interface Reason {
  reason?: string | null;
}

/** `assignee`: `user:dana@acme`, `group:finance`; empty: unassigned. */
export interface ReassignHold {
  assignee?: string | null;
  expires_at?: string | null;
  reason?: string | null;
}

/** Records in order. `horizon`: the first that is not pruned; `head`: the last. */
export interface RecordPage {
  items: RecordWire[];
  horizon: number;
  head: number;
}

/**
 * A record of the journal by its columns. `kind`: created, intent, attempt, substep, asked, chunk, step,
 * snapshot or end. `name`: of its node, as people read it; empty: it is about the whole run. `term`: the
 * claim of the run under which it was written.
 */
export interface RecordWire {
  seq: number;
  at: string;
  kind: string;
  name: string;
  visit: number;
  attempt: number;
  outcome: string;
  term: number;
}

/**
 * Of a document: `dry_run` stores nothing. `activate`: whether new runs start on it; by default only if
 * it is a new version.
 */
export interface RegisterFlow {
  document?: Record<string, unknown> | null;
  source?: string | null;
  /** Default: yaml. */
  format?: "json" | "yaml";
  graph?: Record<string, unknown> | null;
  flow?: string | null;
  /** Default: false. */
  dry_run?: boolean;
  activate?: boolean | null;
}

/** Without `delay` it backs off, from one second to five minutes. */
export interface ReleaseMessage {
  /** `claim_token` of the claim. */
  token: string;
  delay?: string | null;
  error?: string | null;
}

/**
 * An effect outside that may happen again. `guarded`: by a key that the callee recognises, which is the
 * same again.
 */
export interface RepeatedEffect {
  node: string;
  effect: string;
  guarded: boolean;
}

/** `preview`: change nothing. */
export interface ReplayNotices {
  notices: number[];
  /** Default: true. */
  preview?: boolean;
}

/**
 * One past decision. `agrees`: whether the automatic outcome is what people decided; None: not
 * automatic.
 */
export interface Replayed {
  hold: string;
  flow: string;
  node: string;
  prompt: string;
  decided_by: string;
  rule: string | null;
  differences?: Difference[];
  agrees?: boolean | null;
}

/**
 * `text`: what happens to it, or why nothing does. `sends`: false if it waits again but will not be sent,
 * because its hold does not need it any more.
 */
export interface ReplayedNotice {
  id: number;
  done: boolean;
  sends?: boolean;
  text: string;
}

/** In a preview `done` is the number of notifications that would wait again. */
export interface ReplayedNotices {
  preview: boolean;
  done: number;
  items: ReplayedNotice[];
}

/** `question`: its id, if several are open. */
export interface ReplyToQuestion {
  text: string;
  question?: string | null;
}

/**
 * Without a checkpoint and an input the run itself is resumed. `mode`: always `fork`, or always
 * `rewind`.
 */
export interface ResumeRun {
  checkpoint_id?: string | null;
  input_data?: Record<string, unknown> | null;
  /** Default: resume. */
  mode?: "fork" | "resume" | "rewind";
  /** Default: false. */
  accept_loss?: boolean;
  /** Default: false. */
  repeat_effects?: boolean;
}

/**
 * The rights of a credential. A route names the one that it needs; `holds.permissions.check` checks more.
 *
 * Older names (`scaicore:manage`) are read as the ones that replaced them, so that stored tokens keep
 * their rights.
 */
export type Right = "admin:manage" | "audit:read" | "flows:read" | "flows:write" | "holds:manage" | "holds:override" | "holds:read" | "holds:resolve" | "holds:view" | "holds:write" | "queues:read" | "queues:work" | "queues:write" | "runs:read" | "runs:write" | "schedules:read" | "schedules:write";

/**
 * `head`: the last record when it was made; if the run has moved since, ask again. `record`: the record
 * from which the run, or the new run, continues. `run_again`: nodes; `in_doubt`: nodes that had begun their
 * effect there, of which a person is asked first whether it took effect; `withdrawn` and `asked_again`:
 * questions; `text`: all of it as sentences. `refused_without_consent`: nodes with effects outside that a
 * branch repeats because it has to start before a question; it is refused without `repeat_effects`.
 */
export interface RunChangePreview {
  run: string;
  action: string;
  head: number;
  record: number;
  version: string;
  run_again: string[];
  in_doubt?: string[];
  repeated_effects: RepeatedEffect[];
  withdrawn: string[];
  asked_again: string[];
  text: string[];
  refused_without_consent?: string[];
  way?: PreviewEntry[];
}

/** `by_status`: those with at least one run. */
export interface RunCounts {
  count: number;
  by_status: Record<string, number>;
}

/**
 * `unstored`: why the run waits although it is `running`: a large value cannot be written to the blob
 * store now.
 */
export interface RunDetail {
  id: string;
  flow: string;
  version: string;
  status: RunStatus;
  lane: string;
  priority: number;
  tenant: string;
  created_at: string | null;
  updated_at: string | null;
  ended_at?: string | null;
  wakes_at?: string | null;
  waits_for?: MachineWait[];
  asks?: boolean;
  answered?: boolean;
  missing?: string[];
  thread?: string | null;
  instance_key?: string | null;
  started_by?: string | null;
  deployment?: string | null;
  parent_run?: string | null;
  forked_from?: string | null;
  superseded_by?: string | null;
  error?: string | null;
  head?: number;
  event_seq?: number;
  dead?: boolean;
  read_only?: boolean;
  metadata: RunMetadata;
  unstored?: string | null;
}

export interface RunFitWire {
  run: string;
  status: RunStatus;
  version: string;
  fits: boolean;
  misfits: FlowMismatchWire[];
  renamed: Record<string, string>;
}

/** `checkpoint_id`: of its newest open question, if it waits for a person. */
export interface RunMetadata {
  checkpoint_id?: string | null;
  checkpoint_ids?: string[];
}

/** The result or the current state of a run. Values that are declared secret are hidden. */
export interface RunResult {
  id: string;
  status: RunStatus;
  state: Record<string, unknown>;
  artifacts: Record<string, unknown>;
  error?: string | null;
  open_holds?: string[];
  wakes_at?: string | null;
}

export type RunStatus = "cancelled" | "completed" | "failed" | "pending" | "pending_input" | "resumable" | "running" | "waiting";

/**
 * `status`: pending, running, waiting, pending_input, resumable, completed, failed or cancelled.
 * `wakes_at`: until when a run with the status waiting sleeps. `waits_for`: the events, callbacks, child
 * runs and messages that a run with the status pending_input waits for; no person is asked for those.
 * `asks`: it waits for the answer of a person. `answered`: its answer is recorded, and it waits for a worker
 * to resume it; people read "queued". `missing`: what it needs of a worker and no live one has,
 * such as `backend:model` or `provider:openai`; it waits for such a worker.
 */
export interface RunWire {
  id: string;
  flow: string;
  version: string;
  status: RunStatus;
  lane: string;
  priority: number;
  tenant: string;
  created_at: string | null;
  updated_at: string | null;
  ended_at?: string | null;
  wakes_at?: string | null;
  waits_for?: MachineWait[];
  asks?: boolean;
  answered?: boolean;
  missing?: string[];
  thread?: string | null;
  instance_key?: string | null;
  started_by?: string | null;
  deployment?: string | null;
  parent_run?: string | null;
  forked_from?: string | null;
  superseded_by?: string | null;
  error?: string | null;
  head?: number;
  event_seq?: number;
  dead?: boolean;
  read_only?: boolean;
}

/** The text of a document, as it is to be kept. */
export interface SaveDocument {
  source: string;
  /** Default: yaml. */
  format?: "json" | "yaml";
}

/**
 * A document that people work on. `saved_by`, `saved_at`: of its draft; None without one. `version`: the
 * version that new runs start on; None: it was never deployed.
 */
export interface SavedDocument {
  name: string;
  format: "json" | "yaml";
  saved_by: string | null;
  saved_at: string | null;
  version: string | null;
}

/** The instants of the range. Those that have a run are left as they are. */
export interface ScheduleFill {
  items: string[];
}

/** The run exists once a worker that serves the flow has started it. */
export interface ScheduleTrigger {
  run: string;
}

/** `next_at`: its next start, with its jitter; null if it is paused or has ended. */
export interface ScheduleWire {
  name: string;
  flow: string;
  cron: string | null;
  every: string | null;
  at: string | null;
  zone: string;
  anchor: string | null;
  start: string | null;
  end: string | null;
  jitter: string | null;
  missed: string;
  grace: string;
  overlap: string;
  input: unknown;
  stamp: string | null;
  options: Record<string, unknown>;
  paused: boolean;
  over: boolean;
  reason: string;
  by: string;
  declared: boolean;
  next_at: string | null;
  last_at: string | null;
  last_run: string | null;
  passed: number;
  trouble: string;
  trouble_at: string | null;
  revision: number;
  updated_at: string | null;
}

/**
 * `key`: the run that waits for this key gets it; or `run`: only this run. `id`: it is sent once for it;
 * without one, or an `Idempotency-Key`, a new one is made. `keep`: how long it waits for a run.
 */
export interface SendEvent {
  name: string;
  data?: unknown;
  key?: string | null;
  run?: string | null;
  id?: string | null;
  /** `30s`, `5m`, `1h30m`. Default: 7d. */
  keep?: string;
}

/** `delivered`: a run has it; otherwise it is kept until `expires_at`. */
export interface SentEvent {
  id: string;
  name: string;
  key: string | null;
  run: string | null;
  delivered: boolean;
  expires_at: string | null;
}

/**
 * The caller. `csrf`: required for each change with this session; none for tokens. `now`: the server's
 * clock, which deadlines follow; `release`: the version that the server runs; `web_release`: the build of
 * its web app, empty without one. `tenants`: those between which the session can switch. `directory`: where
 * the server looks for people and groups: in the store, elsewhere, or nowhere.
 */
export interface SessionWire {
  subject: string;
  tenant: string;
  rights: Right[];
  groups: string[];
  roles: string[];
  method: string;
  now: string;
  release: string;
  web_release?: string;
  tenants?: string[];
  directory?: "none" | "other" | "store";
  csrf?: string | null;
}

/** A missing field means no limit; a concurrency of 0 stops the flow. `rate`: `100/min`. */
export interface SetLimit {
  concurrency?: number | null;
  rate?: string | null;
}

/**
 * What a judge answered before people saw the question. Until they have decided only `judge` and
 * `sealed`, the SHA-256 digest of the answer, are there. `agrees`: with their decision; `intact`: it is the
 * answer that was sealed; `error`: the judge gave none.
 */
export interface ShadowWire {
  judge: string;
  sealed: string;
  decision?: string | null;
  confidence?: number | null;
  reasoning?: string;
  error?: string;
  at?: string | null;
  agrees?: boolean | null;
  intact?: boolean;
  digests?: Record<string, string>;
}

/** `policy`: its text; none: the stored ones. `since`: only holds opened since then. */
export interface SimulatePolicies {
  policy?: Record<string, unknown> | null;
  since?: string | null;
  flows?: string[];
  /** Default: 1000. */
  limit?: number;
}

/** `differing`: only the holds with another result, oldest first. */
export interface Simulation {
  looked_at: number;
  differing: Replayed[];
  rules: Record<string, number>;
  automatic: number;
  agreeing: number;
  overturned: number;
}

/**
 * A tool that a skill provides, by its registered name. A skill never contains code.
 *
 * `description` replaces the tool's description for the model; `settings` are for the node that uses it.
 */
export interface SkillTool {
  name: string;
  description?: string;
  settings?: Record<string, unknown>;
}

export interface SkillWire {
  name: string;
  version: string;
  description: string;
  instructions: string;
  tools: SkillTool[];
  data: Record<string, unknown>;
  digest: string;
  published_at: string | null;
  published_by: string;
  yanked_at: string | null;
  yanked_reason: string;
}

export interface SnoozeHold {
  /** RFC 3339, with its zone. */
  until: string;
}

/** Percentiles in seconds, and the number of values. */
export interface Spread {
  count: number;
  p50?: number | null;
  p95?: number | null;
}

/** One operation on the state. `op`: set, delete or a reducer's name, whose operand is `after`. */
export interface StateChangeWire {
  path: string;
  op: string;
  before?: unknown;
  after?: unknown;
}

/**
 * The state of the server and its store. `weak`: settings that weaken durability, each with what can be
 * lost. `problems`: damage in the store.
 */
export interface StatusWire {
  release: string;
  store: string;
  schema: number;
  size: number;
  problems: string[];
  drift: string[];
  weak: string[];
  unfinished_migrations: number[];
  blobs: number;
  missing_blobs: number;
  lapsed_runs: number;
  workers: number;
  flows: Record<string, string>;
}

/** `stage`: the node whose agent gets it; without one, the first that can. */
export interface SteerRun {
  text: string;
  stage?: string;
}

/** The message waits until the agent has made its tool calls. */
export interface SteerTaken {
  id: string;
  run: string;
  text: string;
}

/**
 * One visit with everything that is recorded about it. `input`: the state that it saw. `traceback`: of
 * its error, the frames of the flow first.
 */
export interface StepWire {
  node: string;
  scope: string;
  visit: number;
  state: "ready" | "running" | "waiting" | "asking" | "done" | "failed" | "skipped" | "cancelled" | "unknown" | "abandoned" | "stopped";
  outcome: string;
  started_at: string;
  ended_at: string | null;
  attempts: number;
  work_ms: number;
  error: string;
  waits: WaitWire[];
  steps: number;
  tokens: number;
  cost: number;
  said: string;
  progress: number | null;
  run: string;
  first?: number;
  seq?: number;
  retries?: AttemptWire[];
  inside?: FoldedVisits | null;
  name?: string;
  effect: "" | "pure" | "read" | "write" | "external" | "human";
  input: unknown;
  output: unknown;
  error_detail: Record<string, string> | null;
  traceback: string;
  spans: AttemptSpanWire[];
  emitted: EmittedWire[];
  calls: CallWire[];
  changes: StateChangeWire[];
  edges: string[];
}

/**
 * `dot`: the source. `files`: the texts of the files that it names, by their names relative to it; no
 * other files are read. `context`: initial values. `simulate`: no model is called. `backend`: the name of
 * the one that answers its prompts: `model`, `agent:claude`, or as the operator named it. `strict`: strict
 * grammar.
 */
export interface SubmitPipeline {
  dot: string;
  files?: Record<string, string>;
  context?: Record<string, unknown>;
  /** Default: false. */
  simulate?: boolean;
  backend?: string;
  /** Default: false. */
  strict?: boolean;
  thread?: string | null;
  lane?: string | null;
}

export interface SwitchTenant {
  tenant: string;
}

/** `content`: the message. Without it, the `content` or `message` of the input, if that is a text. */
export interface ThreadRun {
  flow?: string | null;
  workflow_uri?: string | null;
  version?: string | null;
  input?: Record<string, unknown>;
  thread?: string | null;
  lane?: string | null;
  priority?: number | null;
  instance_key?: string | null;
  deployment?: string | null;
  mode?: "barrier" | "exit" | "strict" | null;
  breaks?: string[];
  idempotency_key?: string | null;
  /** Seconds to wait until it ends or waits. Default: 0. */
  wait?: number;
  content?: string | Record<string, unknown> | null;
  request_id?: string | null;
}

/** `open_runs`: those that have not ended; `pending_input_runs`: those that wait for a person. */
export interface ThreadWire {
  id: string;
  runs: number;
  open_runs: number;
  pending_input_runs: number;
  created_at: string;
  last_run_at: string;
  updated_at: string;
}

/**
 * Visits in the order of their start. `next`: the cursor of the page with earlier ones; `left_out`: their
 * number. `marks`: failures, decisions and resumes. `horizon`: the first record that is not pruned.
 * `damage`: why the run's journal cannot be read, if so. `first_worker`: the worker that started the run, as
 * long as it has the run or if it died; a run that it left otherwise does not name it.
 */
export interface TimelineWire {
  run: string;
  items: VisitWire[];
  next: string | null;
  marks: MarkWire[];
  horizon: number;
  head: number;
  nodes: Record<string, NodeTotals>;
  edges: Record<string, number>;
  left_out: number;
  damage?: string;
  first_worker?: string;
}

/** `token`: its text, only in the answer that created it. */
export interface TokenWire {
  id: string;
  subject: string;
  tenant: string;
  roles: string[];
  rights: Right[];
  groups: string[];
  status: string;
  note: string;
  created_at: string;
  created_by: string;
  expires_at?: string | null;
  last_used_at?: string | null;
  token?: string | null;
}

export interface TriggerSchedule {
  input?: Record<string, unknown> | null;
}

/** Ready runs that no live worker takes: none serves the lane, or none has the code of the version. */
export interface UnservedRunsWire {
  lane: string;
  flow: string;
  version: string;
  ready: number;
  oldest_seconds: number;
}

/** Schedules that will fire for a flow that no live worker serves. */
export interface UnservedSchedulesWire {
  flow: string;
  schedules: number;
}

/** All problems are reported, and nothing is stored. */
export interface ValidateFlow {
  document?: Record<string, unknown> | null;
  source?: string | null;
  /** Default: yaml. */
  format?: "json" | "yaml";
  graph?: Record<string, unknown> | null;
  flow?: string | null;
}

export interface VerifyAudit {
  against?: KnownHead | null;
}

/** `count`: its number of holds that you may see, if requested; counting stops at 10,000. */
export interface ViewWire {
  id: string;
  title: string;
  owner: string;
  shared: boolean;
  filters: Filters;
  order: HoldOrder | null;
  url: string;
  version: number;
  count?: number | null;
}

/**
 * One visit of one node. `name`: as people read it. `first`: the record with which it began. `seq`: the
 * record that settled it, or the latest about it. `run`: whose records these are, for a fork its source.
 * `retries`: its attempts after the first. `inside`: visits of its items, if they are folded.
 */
export interface VisitWire {
  node: string;
  scope: string;
  visit: number;
  state: "ready" | "running" | "waiting" | "asking" | "done" | "failed" | "skipped" | "cancelled" | "unknown" | "abandoned" | "stopped";
  outcome: string;
  started_at: string;
  ended_at: string | null;
  attempts: number;
  work_ms: number;
  error: string;
  waits: WaitWire[];
  steps: number;
  tokens: number;
  cost: number;
  said: string;
  progress: number | null;
  run: string;
  first?: number;
  seq?: number;
  retries?: AttemptWire[];
  inside?: FoldedVisits | null;
  name?: string;
}

/**
 * `kind`: person, time, retry or failed (its run had failed, until it was retried). Open while `until` is
 * null. `breakpoint`: a person continues the run there.
 */
export interface WaitWire {
  kind: string;
  since: string;
  until?: string | null;
  wake_at?: string | null;
  about?: string;
  hold?: string;
  by?: string;
  decision?: unknown;
  breakpoint?: boolean;
}

/**
 * `outcome`: resolved, voted (more votes are needed), already_decided, late (the hold was cancelled or
 * expired), kept (the hold does not exist yet), duplicate or ignored.
 */
export interface WebhookTaken {
  outcome: string;
  checkpoint_id?: string | null;
  status?: string | null;
}

export interface WithdrawQuestion {
  question?: string | null;
}

/**
 * `blocked_entities`, and `unstored`: runs that wait because a large value cannot be written to the blob
 * store, with the reason (at most 100); both as of its last heartbeat. Such a run is `running`.
 */
export interface WorkerWire {
  name: string;
  host: string;
  pid: number;
  release: string;
  alive: boolean;
  started_at: string | null;
  seen_at: string | null;
  lanes: string[] | null;
  flows: string[];
  versions: Record<string, string>;
  concurrency: number;
  busy: number;
  in_memory: number;
  draining: boolean;
  skew_seconds: number;
  records: number;
  ended: number;
  records_per_second: number;
  ended_per_second: number;
  blocked_entities?: BlockedEntityWire[];
  unstored?: Record<string, string>;
}

export interface YankReason {
  reason?: string;
}
