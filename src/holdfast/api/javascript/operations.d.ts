// Made of the OpenAPI document by tools/js_client.py: change the routes, not this file.
import type { EventStream, HoldEvent, Options, PipelineEvent, RunEvent, Sent, StreamOptions } from "./holdfast.js";

/** What each operation of the server is called, takes and gives. */
export interface Operations {
  /**
   * Answer what a pipeline asks.
   *
   * The first answer counts: 409 for the next, which says whose that was. 422 for what is none of them.
   */
  answerQuestion(run: string, hold: string, body?: AnswerQuestion, options?: Options): Promise<AnswerTaken>;
  /** Ask a question before you decide; the deadline pauses until there is a reply. */
  askBack(hold: string, body: AskBack, options?: Options): Promise<HoldWire>;
  /**
   * Attach files to fields of kind `file`: a form whose parts are named as the fields.
   *
   * What it answers goes into the `response_data` of the decision.
   */
  attachFile(hold: string, body: FormData | Record<string, Blob>, options?: Options): Promise<Page<FileWire>>;
  /** The current head of the audit. */
  auditHead(options?: Options): Promise<AuditHead>;
  /** Sign in with a token, in a browser: it becomes a session, and ends with the token. */
  beginSession(body: BeginSession, options?: Options): Promise<void>;
  /** Withdraw it without a decision. */
  cancelCheckpoint(checkpoint: string, body?: Reason, options?: Options): Promise<CheckpointWire>;
  /** Withdraw it without a decision. */
  cancelHold(hold: string, body?: Reason, options?: Options): Promise<HoldWire>;
  /** Ask a pipeline to stop. Whoever has it does so at the next moment; its open questions are withdrawn. */
  cancelPipeline(run: string, body?: CancelPipeline, options?: Options): Promise<PipelineWire>;
  /** Cancel a run. Its worker stops it as soon as possible; its open holds are withdrawn. */
  cancelRun(run: string, body?: CancelRun, options?: Options): Promise<RunDetail>;
  /** Change it: its owner and admins may. `If-Match`: only the version that you have seen. */
  changeView(view: string, body: NewView, options?: Options): Promise<ViewWire>;
  /** What the newest version that is loaded here means for live runs on others: which fit, and why not. */
  checkFlow(flow: string, options?: Options): Promise<FlowCheck>;
  /** Created, notification sent, resolved, and what else happened, oldest first. */
  checkpointHistory(checkpoint: string, options?: Options): Promise<Page<EntryWire>>;
  /** Claim it for a while; an unassigned one becomes yours. */
  claimHold(hold: string, body?: ClaimHold, options?: Options): Promise<HoldWire>;
  /** What the flow declares holds again. */
  clearLimit(name: string, options?: Options): Promise<void>;
  /** For all who see the hold, also after it is decided. */
  commentOnHold(hold: string, body: NewComment, options?: Options): Promise<NoteWire>;
  /** How many that list has. */
  countHolds(query?: CountHoldsQuery, options?: Options): Promise<Count>;
  /**
   * Start a run. It is durable when this returns; a worker that serves its flow runs it.
   *
   * 201 with its `Location`; 200 and the same run for a key that was used before, 422 where the key was used
   * for another input.
   */
  createRun(body?: CreateRun, options?: Options): Promise<RunDetail>;
  /**
   * Say something in a thread.
   *
   * Where a run of it waits for input, the message is the answer: 200 and that run, which resumes (409 where
   * several questions are open and none is named). Otherwise, and with `auto_resume_pending=false`, it starts
   * a run of `flow` in the thread: 201.
   */
  createThreadRun(thread: string, body?: ThreadRun, query?: CreateThreadRunQuery, options?: Options): Promise<RunDetail>;
  /** Make a token of this tenant, with no more rights than your own. Its text is shown only now. */
  createToken(body: CreateToken, options?: Options): Promise<TokenWire>;
  /** One decision on many, each by itself. A preview, the default, says what would be. */
  decideMany(body: BulkAnswer, options?: Options): Promise<BulkWire>;
  /** Delegate it to a person: holds for `delegated_user` go to them. */
  delegateDeployment(name: string, body: DelegateDeployment, options?: Options): Promise<DeploymentWire>;
  /** What differs from this run, or a moment `at` of it, to another moment: values, visits, their cost. */
  diffRuns(run: string, query: DiffRunsQuery, options?: Options): Promise<Record<string, unknown>>;
  /**
   * Discard it: the next worker that serves its flow ends it as cancelled.
   *
   * With `unread` it ends at once, without being loaded: for a run whose flow no worker serves any more.
   */
  discardDeadRun(run: string, body?: DiscardDead, options?: Options): Promise<RunDetail>;
  /** This chat user decides nothing any more. */
  dropChatPerson(way: string, chat: string, options?: Options): Promise<void>;
  /** Forget it. */
  dropDraft(hold: string, options?: Options): Promise<void>;
  /** Nobody is in it any more. */
  dropGroup(key: string, options?: Options): Promise<void>;
  /** Gone from the directory, and from every group and role. */
  dropPerson(person: string, options?: Options): Promise<void>;
  /** Its rules match nothing more. */
  dropPolicy(name: string, options?: Options): Promise<void>;
  /** Withdraw the question: no reply is needed, and the deadline runs again. */
  dropQuestion(hold: string, body?: DropQuestion, options?: Options): Promise<HoldWire>;
  /** Nobody has it any more. */
  dropRole(key: string, options?: Options): Promise<void>;
  /** Delete it. Runs that it has started continue. */
  dropSchedule(name: string, options?: Options): Promise<void>;
  /** Drop it; the holds stay. */
  dropView(view: string, options?: Options): Promise<void>;
  /** Back again. */
  endAway(person: string, options?: Options): Promise<void>;
  /** Say that you no longer look at it. */
  endPresence(hold: string, options?: Options): Promise<void>;
  /** Sign out, here and everywhere this session is used. */
  endSession(options?: Options): Promise<void>;
  /** The run with its whole history as a file, for another store; encrypted where the store is. */
  exportRun(run: string, options?: Options): Promise<Response>;
  /** Give it a later deadline. */
  extendHold(hold: string, body: ExtendHold, options?: Options): Promise<HoldWire>;
  /** A new run that begins at a checkpoint of this one. This one is not changed. */
  forkRun(run: string, body?: BranchRun, options?: Options): Promise<RunDetail>;
  /** One of them as a file: bytes as they are, text as text, all else as JSON. */
  getArtifact(run: string, name: string, options?: Options): Promise<Response>;
  /** One checkpoint. */
  getCheckpoint(checkpoint: string, options?: Options): Promise<CheckpointWire>;
  /** Every death of a worker that had this run, with the nodes that were under way. */
  getDeadRun(run: string, options?: Options): Promise<DeadRunWire>;
  /** By name or id. */
  getDeployment(name: string, options?: Options): Promise<DeploymentWire>;
  /** Your own, as far as it is filled in. Raises 404 where there is none. */
  getDraft(hold: string, options?: Options): Promise<DraftWire>;
  /** How much there is to do, and how late it is. */
  getFigures(options?: Options): Promise<FiguresWire>;
  /** A flow's versions, newest first. */
  getFlow(flow: string, options?: Options): Promise<FlowWire>;
  /** The graph of a version, as SVG. */
  getFlowDrawing(flow: string, version: string, options?: Options): Promise<Response>;
  /** The graph of a version: by its fingerprint, its label, or `latest`. */
  getFlowVersion(flow: string, version: string, options?: Options): Promise<FlowGraph>;
  /** One hold. Its ETag is its version: send it as If-Match to decide on what you have seen. */
  getHold(hold: string, options?: Options): Promise<HoldWire>;
  /** By id or address. */
  getPerson(person: string, options?: Options): Promise<PersonWire>;
  /** How far a pipeline is. */
  getPipeline(run: string, options?: Options): Promise<PipelineWire>;
  /** Where the pipeline stands, as its `checkpoint.json` has it. */
  getPipelineCheckpoint(run: string, options?: Options): Promise<Record<string, unknown>>;
  /** The values that its stages hand to each other, by key. */
  getPipelineContext(run: string, options?: Options): Promise<Record<string, unknown>>;
  /** The pipeline drawn as SVG: each stage coloured by its state, and the edges that were taken. */
  getPipelineGraph(run: string, options?: Options): Promise<Response>;
  /** One run. */
  getRun(run: string, options?: Options): Promise<RunDetail>;
  /** A checkpoint with the states of its nodes: by its id, the number of its record, or `latest`. */
  getRunCheckpoint(run: string, checkpoint: string, options?: Options): Promise<CheckpointDetail>;
  /** The run's graph with the state of each node, as SVG. */
  getRunDrawing(run: string, options?: Options): Promise<Response>;
  /** The result of a run. `wait`: at most this many seconds, until it has ended or waits for input. */
  getRunResult(run: string, query?: GetRunResultQuery, options?: Options): Promise<RunResult>;
  /** When it fires, what it starts, and how it goes. */
  getSchedule(name: string, options?: Options): Promise<ScheduleWire>;
  /** Who the caller is, and what they may. */
  getSession(options?: Options): Promise<SessionWire>;
  /** How the server and its store are. */
  getStatus(options?: Options): Promise<StatusWire>;
  /** Each visit of each node: when it began, waited, asked, tried again, and what came of it. */
  getTimeline(run: string, query?: GetTimelineQuery, options?: Options): Promise<TimelineWire>;
  /** One view. */
  getView(view: string, options?: Options): Promise<ViewWire>;
  /**
   * Answer what a run asks, from any device; the body is read as JSON whatever its content type.
   *
   * A text is an answer's id, then its label, whatever the case: 422 with the ids where it is neither. 409
   * where several questions are open and none is named, and where it is decided already.
   */
  giveInput(run: string, body: GiveInput, options?: Options): Promise<InputTaken>;
  /** One decision as a file that `tools/verify_evidence.py` checks offline. That you took it is audited. */
  holdEvidence(hold: string, options?: Options): Promise<unknown>;
  /** What happened to it, oldest first. Each entry has its number in the audit. */
  holdHistory(hold: string, options?: Options): Promise<Page<EntryWire>>;
  /** Figures about the holds that you may see. Lengths are seconds, rates are shares of 1. */
  holdMetrics(query?: HoldMetricsQuery, options?: Options): Promise<HoldMetrics>;
  /** What an answer to it must be, for programs. */
  holdSchema(hold: string, options?: Options): Promise<AnswerSchema>;
  /**
   * Import an exported run as read-only history, or as a new run that continues from its end.
   *
   * The same file again gives the same run.
   */
  importRun(body: Sent, query?: ImportRunQuery, options?: Options): Promise<RunDetail>;
  /** What the run has made so far, by name. */
  listArtifacts(run: string, options?: Options): Promise<Page<ArtifactWire>>;
  /** What was done and refused, oldest first. A page may be short and still have a `next`. */
  listAudit(query?: ListAuditQuery, options?: Options): Promise<Page<AuditWire>>;
  /** Those that business time is counted by; `default` is that of holds that name none. */
  listCalendars(options?: Options): Promise<Page<HoldSetting>>;
  /** Holds that you may see; `checkpoint_type=debug_breakpoint` for the bar of breakpoints. */
  listCheckpoints(query?: ListCheckpointsQuery, options?: Options): Promise<Page<CheckpointWire>>;
  /** Comments, questions back and their answers, oldest first. */
  listComments(hold: string, options?: Options): Promise<Page<NoteWire>>;
  /** Messages to people that were given up, at most 200. */
  listDeadNotices(options?: Options): Promise<Page<DeadNotice>>;
  /** Dead letters: runs that were given up because their workers kept dying, newest first. */
  listDeadRuns(query?: ListDeadRunsQuery, options?: Options): Promise<Page<RunWire>>;
  /** Flows put to work under a name; a hold's `deployment` is its id. */
  listDeployments(options?: Options): Promise<Page<DeploymentWire>>;
  /** The stored log after a number, oldest first: nothing twice, nothing missing. */
  listEvents(run: string, query?: ListEventsQuery, options?: Options): Promise<EventPage>;
  /** What was attached, in the order in which it came. */
  listFiles(hold: string, options?: Options): Promise<Page<FileWire>>;
  /** Every flow that the store knows, by name, with its versions. */
  listFlows(options?: Options): Promise<Page<FlowWire>>;
  /** All groups. */
  listGroups(options?: Options): Promise<Page<CircleWire>>;
  /** Holds that you may see, in pages that stay in place. `view=mine` is your own inbox. */
  listHolds(query?: ListHoldsQuery, options?: Options): Promise<Page<HoldWire>>;
  /** Limits as they hold, with how many runs are inside and how many wait. */
  listLimits(query?: ListLimitsQuery, options?: Options): Promise<Page<LimitWire>>;
  /**
   * Runs that wait for input, with their questions: the newest question first.
   *
   * With `mine` a page may be short although `next` leads on: it is found among so many questions only.
   */
  listPendingRuns(query?: ListPendingRunsQuery, options?: Options): Promise<Page<PendingWire>>;
  /** Everybody in the directory of the store. */
  listPeople(options?: Options): Promise<Page<PersonWire>>;
  /** Those that are kept in the store, by name. */
  listPolicies(options?: Options): Promise<Page<HoldSetting>>;
  /** Who is looking at it now. */
  listPresence(hold: string, options?: Options): Promise<Page<HoldViewerWire>>;
  /** What a pipeline asks now, as far as it is for you to see. */
  listQuestions(run: string, options?: Options): Promise<QuestionList>;
  /** All roles that holds can wait for. */
  listRoles(options?: Options): Promise<Page<CircleWire>>;
  /** A run's checkpoints, newest first, without their state. */
  listRunCheckpoints(run: string, query?: ListRunCheckpointsQuery, options?: Options): Promise<Page<CheckpointSummary>>;
  /** The tenant's runs, newest first. */
  listRuns(query?: ListRunsQuery, options?: Options): Promise<Page<RunWire>>;
  /** The tenant's schedules, by name. */
  listSchedules(query?: ListSchedulesQuery, options?: Options): Promise<Page<ScheduleWire>>;
  /** Every version of every skill, or of one. */
  listSkills(query?: ListSkillsQuery, options?: Options): Promise<Page<SkillWire>>;
  /** The runs of a thread, newest first. */
  listThreadRuns(thread: string, query?: ListThreadRunsQuery, options?: Options): Promise<Page<RunWire>>;
  /** The tenant's tokens, newest first, without their text. */
  listTokens(options?: Options): Promise<Page<TokenWire>>;
  /** What it shows you: the same view shows each only what they may see. */
  listView(view: string, query?: ListViewQuery, options?: Options): Promise<Page<HoldWire>>;
  /** Your own and the shared ones, by title. `counts=true`: with how many holds each has for you. */
  listViews(query?: ListViewsQuery, options?: Options): Promise<Page<ViewWire>>;
  /** Who works, by name; also those that have fallen silent within the last day. */
  listWorkers(options?: Options): Promise<Page<WorkerWire>>;
  /**
   * A link for one person. It is void once it is used, the hold is reassigned or decided, or its links are
   *
   * revoked.
   */
  makeLink(hold: string, body: NewLink, options?: Options): Promise<LinkWire>;
  /** Mark it as seen; the first time is in the audit, and counts in the metrics. */
  markSeen(hold: string, options?: Options): Promise<void>;
  /** When it would fire, if it is not paused. */
  nextOfSchedule(name: string, query?: NextOfScheduleQuery, options?: Options): Promise<Instants>;
  /** It fires no more until it is resumed. */
  pauseSchedule(name: string, body?: PauseSchedule, options?: Options): Promise<ScheduleWire>;
  /** Decide it after a few seconds, unless you take the decision back before. */
  placeDecision(hold: string, body?: PlaceDecision, options?: Options): Promise<HoldWire>;
  /** A version, for good: the same content again is no change, other content is refused. */
  publishSkill(name: string, version: string, body?: PublishSkill, options?: Options): Promise<SkillWire>;
  /** Out of office; a substitute acts for them. */
  putAway(person: string, body: PutAway, options?: Options): Promise<void>;
  /** Write it. The deadlines of open holds that it counts are counted again. */
  putCalendar(name: string, body: Record<string, unknown>, options?: Options): Promise<HoldSetting>;
  /** Make it, or change its settings for runs that start later. */
  putDeployment(name: string, body: PutDeployment, options?: Options): Promise<DeploymentWire>;
  /** With exactly these members. */
  putGroup(key: string, body: PutCircle, options?: Options): Promise<CircleWire>;
  /** New, or changed. Who is not `active` may do nothing. */
  putPerson(person: string, body?: PutPerson, options?: Options): Promise<PersonWire>;
  /** Write it: it counts for holds that open from now on. */
  putPolicy(name: string, body: Record<string, unknown>, options?: Options): Promise<HoldSetting>;
  /** With exactly these members. */
  putRole(key: string, body: PutCircle, options?: Options): Promise<CircleWire>;
  /** Make a schedule (201), or change it from now on (200). `If-Match`: only over the one you have seen. */
  putSchedule(name: string, body: PutSchedule, options?: Options): Promise<ScheduleWire>;
  /** The content of a file, to be saved: no browser opens it here. Who read it is in the audit. */
  readFile(hold: string, digest: string, options?: Options): Promise<Response>;
  /** Reassign it; the new assignee is notified. */
  reassignCheckpoint(checkpoint: string, body?: ReassignHold, options?: Options): Promise<CheckpointWire>;
  /** Reassign it; the new assignee is notified. Its older links are void. */
  reassignHold(hold: string, body?: ReassignHold, options?: Options): Promise<HoldWire>;
  /**
   * Keep a version of a flow: 201, or 200 where it is known already.
   *
   * A graph is data: it brings no code. Its runs advance on workers that have code of the same graph.
   */
  registerFlow(body?: RegisterFlow, options?: Options): Promise<FlowGraph>;
  /** Release a claim. */
  releaseHold(hold: string, options?: Options): Promise<HoldWire>;
  /** Try it again, once its cause is fixed. */
  replayNotice(message: string, options?: Options): Promise<DeadNotice>;
  /** Reply to a question. */
  replyToQuestion(hold: string, body: ReplyToQuestion, options?: Options): Promise<HoldWire>;
  /** Say that you are looking at it, for 30 seconds: repeat it every 10 to 20. Returns who else is. */
  reportPresence(hold: string, body?: PresenceBeat, options?: Options): Promise<Page<HoldViewerWire>>;
  /** Decide it: `{"decision": ...}` or `{"resolution": ...}`. A breakpoint takes `continue`. */
  resolveCheckpoint(checkpoint: string, body?: HoldAnswer, options?: Options): Promise<CheckpointWire>;
  /**
   * Decide it, once; where several have to agree, give your vote.
   *
   * `Idempotency-Key`: the same request again gets the same answer. `If-Match`: only the version that you have
   * seen. 409 names who was first; 422 names each field that does not fit, and the hold stays open.
   */
  resolveHold(hold: string, body?: HoldAnswer, options?: Options): Promise<HoldWire>;
  /** Undo a yank. */
  restoreSkill(name: string, version: string, options?: Options): Promise<SkillWire>;
  /**
   * Resume a run from its latest checkpoint or another.
   *
   * The latest checkpoint and no `input_data`: the same run is resumed, 200. An older checkpoint, or an input:
   * a fork of it, 201 with its `Location` and `forked_from`; the run itself is left as it is. A finished run:
   * 200, and nothing is executed.
   */
  resumeRun(run: string, body?: ResumeRun, query?: ResumeRunQuery, options?: Options): Promise<RunDetail>;
  /** It fires again, from the next instant on. */
  resumeSchedule(name: string, options?: Options): Promise<ScheduleWire>;
  /** Retry it once the cause is fixed: any worker may resume it. */
  retryDeadRun(run: string, options?: Options): Promise<RunDetail>;
  /** End its delegation. */
  revokeDelegation(name: string, options?: Options): Promise<DeploymentWire>;
  /** Every link of it is void. */
  revokeLinks(hold: string, options?: Options): Promise<HoldWire>;
  /** Revoke it: here at once, on other servers within five seconds. */
  revokeToken(token: string, options?: Options): Promise<TokenWire>;
  /** A fork that takes this run's place: this one ends as cancelled, with links both ways. */
  rewindRun(run: string, body?: BranchRun, options?: Options): Promise<RunDetail>;
  /** Keep what is filled in so far; it is not checked. */
  saveDraft(hold: string, body?: DraftWire, options?: Options): Promise<void>;
  /** Keep a list of holds under a title. */
  saveView(body: NewView, options?: Options): Promise<ViewWire>;
  /** Who a chat user is here. */
  setChatPerson(way: string, chat: string, body: ChatPerson, options?: Options): Promise<void>;
  /** Set a limit in place of what the flow declares: `flow:refund`, `flow:refund/*`, `flow:refund/acme`. */
  setLimit(name: string, body?: SetLimit, options?: Options): Promise<LimitWire>;
  /** What past decisions would have been under these rules. Nothing is written, no judge is asked. */
  simulatePolicies(body?: SimulatePolicies, options?: Options): Promise<Simulation>;
  /** Snooze it until then. Its deadline stays. */
  snoozeHold(hold: string, body: SnoozeHold, options?: Options): Promise<void>;
  /**
   * What becomes of the holds that you may see, as server-sent events.
   *
   * The id of each is its number in the tenant's audit; `Last-Event-ID` or `after` continues from
   * there, without one it begins now. The numbers have gaps where something is not for you to see.
   */
  streamHolds(query?: StreamHoldsQuery, options?: StreamOptions): EventStream<HoldEvent>;
  /**
   * A pipeline's events as server-sent events, in the words of section 9.6, from its stored log.
   *
   * A client that connects later gets every event from the first; one that reconnects with `Last-Event-ID`
   * misses nothing and hears nothing twice. The stream ends behind the last event of a run that has ended;
   * 204: there is nothing after that id, and nothing will come.
   */
  streamPipeline(run: string, query?: StreamPipelineQuery, options?: StreamOptions): EventStream<PipelineEvent>;
  /**
   * A run's events as server-sent events, from its stored log.
   *
   * The id of each is its number: a client that reconnects with `Last-Event-ID` (browsers do) misses nothing
   * and sees nothing twice. The stream ends after the last event of a run that has ended; 204: there is
   * nothing after that number, and nothing will come. `names=seed`: `checkpoint_created`, `checkpoint_resumed`
   * and `approval` with the fields of the runtime proposal, as under `/runs/{run}/stream`.
   */
  streamRun(run: string, query?: StreamRunQuery, options?: StreamOptions): EventStream<RunEvent>;
  /**
   * Start a pipeline; durable when this answers, and taken by any worker.
   *
   * 400 with every fault of the document at its place. 403 for commands and files, unless the operator allows
   * them (`holdfast serve --allow-code`).
   */
  submitPipeline(body: SubmitPipeline, options?: Options): Promise<PipelineWire>;
  /** A click in Slack: the request URL of the app's interactivity. Signed by Slack (`X-Slack-Signature`). */
  takeClick(way: string, body: Sent, options?: Options): Promise<void>;
  /**
   * A reply to a mail, whole, as the mail server took it, with its Authentication-Results.
   *
   * Signed as Standard Webhooks are, by whatever hands it over.
   */
  takeMail(way: string, body: Sent, options?: Options): Promise<MailTaken>;
  /**
   * Another system has the answer to a hold: `{"data": {"correlation_id", "decision", ...}}`.
   *
   * Signed as Standard Webhooks are. The same message again changes nothing and is answered with 200.
   */
  takeWebhook(way: string, body: unknown, options?: Options): Promise<WebhookTaken>;
  /** One run now, beside its instants, also while it is paused. */
  triggerSchedule(name: string, body?: TriggerSchedule, options?: Options): Promise<ScheduleTrigger>;
  /** Take your own placed decision back. */
  undoDecision(hold: string, options?: Options): Promise<HoldWire>;
  /** End the snooze. */
  unsnoozeHold(hold: string, options?: Options): Promise<void>;
  /** Stop watching it. */
  unwatchHold(hold: string, options?: Options): Promise<void>;
  /** Every problem of a flow at once, each with its place and how to fix it. Nothing is stored or run. */
  validateFlow(body?: ValidateFlow, options?: Options): Promise<FlowValidation>;
  /** Walk the chain from the first record to the head. `against`: a head that you kept before. */
  verifyAudit(body?: VerifyAudit, options?: Options): Promise<AuditVerification>;
  /** The same, by the name that it has where several have to agree. */
  voteOnHold(hold: string, body?: HoldAnswer, options?: Options): Promise<HoldWire>;
  /** Watch it. */
  watchHold(hold: string, options?: Options): Promise<void>;
  /** No new run gets it; runs that are pinned to it keep it. */
  yankSkill(name: string, version: string, body?: YankReason, options?: Options): Promise<SkillWire>;
}

/** Lists of many pages as one. */
export interface Each {
  listAudit(query?: ListAuditQuery, options?: Options): AsyncGenerator<AuditWire, void, undefined>;
  listCheckpoints(query?: ListCheckpointsQuery, options?: Options): AsyncGenerator<CheckpointWire, void, undefined>;
  listEvents(run: string, query?: ListEventsQuery, options?: Options): AsyncGenerator<EventWire, void, undefined>;
  listHolds(query?: ListHoldsQuery, options?: Options): AsyncGenerator<HoldWire, void, undefined>;
  listPendingRuns(query?: ListPendingRunsQuery, options?: Options): AsyncGenerator<PendingWire, void, undefined>;
  listRunCheckpoints(run: string, query?: ListRunCheckpointsQuery, options?: Options): AsyncGenerator<CheckpointSummary, void, undefined>;
  listRuns(query?: ListRunsQuery, options?: Options): AsyncGenerator<RunWire, void, undefined>;
  listSchedules(query?: ListSchedulesQuery, options?: Options): AsyncGenerator<ScheduleWire, void, undefined>;
  listThreadRuns(thread: string, query?: ListThreadRunsQuery, options?: Options): AsyncGenerator<RunWire, void, undefined>;
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
}

export interface CreateThreadRunQuery {
  auto_resume_pending?: boolean;
}

export interface DiffRunsQuery {
  to: string;
  at?: string | null;
  whole?: boolean;
}

export interface GetRunResultQuery {
  /** Seconds to wait for it to come to rest. */
  wait?: number;
}

export interface GetTimelineQuery {
  /** Ended visits, the newest. */
  limit?: number;
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
  calendar?: string | null;
}

export interface ImportRunQuery {
  as_new_run?: boolean;
}

export interface ListAuditQuery {
  module?: string[];
  checkpoint?: string | null;
  execution?: string[];
  actor?: string[];
  action?: string[];
  since?: string | Date | null;
  until?: string | Date | null;
  /** How many at most. */
  limit?: number;
  cursor?: string | null;
}

export interface ListCheckpointsQuery {
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
  order?: HoldOrder | null;
  /** How many at most. */
  limit?: number;
  cursor?: string | null;
  checkpoint_type?: string[];
  core?: string[];
  execution?: string[];
}

export interface ListDeadRunsQuery {
  /** How many at most. */
  limit?: number;
}

export interface ListEventsQuery {
  after?: number;
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
  order?: HoldOrder | null;
  /** How many at most. */
  limit?: number;
  cursor?: string | null;
}

export interface ListLimitsQuery {
  prefix?: string;
  keys?: boolean;
}

export interface ListPendingRunsQuery {
  thread?: string | null;
  mine?: boolean;
  /** How many at most. */
  limit?: number;
  cursor?: string | null;
}

export interface ListRunCheckpointsQuery {
  node?: string | null;
  /** How many at most. */
  limit?: number;
  cursor?: string | null;
}

export interface ListRunsQuery {
  status?: RunStatus[];
  flow?: string | null;
  version?: string | null;
  thread?: string | null;
  /** How many at most. */
  limit?: number;
  cursor?: string | null;
}

export interface ListSchedulesQuery {
  /** How many at most. */
  limit?: number;
  cursor?: string | null;
}

export interface ListSkillsQuery {
  name?: string | null;
}

export interface ListThreadRunsQuery {
  status?: RunStatus[];
  /** How many at most. */
  limit?: number;
  cursor?: string | null;
}

export interface ListViewQuery {
  /** How many at most. */
  limit?: number;
  cursor?: string | null;
}

export interface ListViewsQuery {
  counts?: boolean;
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
  /** Only what has a higher id. */
  after?: number;
}

export interface StreamRunQuery {
  /** Only what has a higher number. */
  after?: number;
  /** Only what has a higher number. */
  after_sequence?: number;
  names?: EventNames | null;
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

/** `decision`: what the hold was decided with; null where it was skipped. */
export interface AnswerTaken {
  id: string;
  status: string;
  decision: string | null;
  resolved_by: string | null;
}

/** `digest`: where it lies among the blobs, for a large one. `size`: the bytes of the download. */
export interface ArtifactWire {
  name: string;
  media_type: string;
  size: number;
  digest?: string | null;
}

/** `to`: requester, agent, or a colleague as `user:NAME`. */
export interface AskBack {
  text: string;
  to?: string;
}

export interface AssigneeWire {
  type: string;
  value: string;
  reason?: string;
}

/** The head of the audit: keep it where a writer of the store cannot change it. */
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

/** `hash` is of the one before it, of these fields and the digest of `data`: a chain for each tenant. */
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

/**
 * From a checkpoint, by its id or the number of its record; without, from where the run stands. `patch`
 * has the partitions input, scratch and artifacts, each merged key by key.
 */
export interface BranchRun {
  checkpoint_id?: string | null;
  seq?: number | null;
  input_data?: Record<string, unknown> | null;
  patch?: Record<string, unknown> | null;
}

/** `preview`: only say what would be. `versions`: those that were shown; what has changed is left out. */
export interface BulkAnswer {
  holds: string[];
  decision: string;
  comment?: string | null;
  preview?: boolean;
  versions?: Record<string, number>;
}

export interface BulkItemWire {
  hold: string;
  done: boolean;
  code?: string | null;
  why?: string | null;
  status?: string | null;
  version?: number | null;
}

/** `left_out`: how many for which reason. In a preview `done` is what would be. */
export interface BulkWire {
  preview: boolean;
  done: number;
  left_out: Record<string, number>;
  items: BulkItemWire[];
}

export interface CancelPipeline {
  reason?: string;
}

export interface CancelRun {
  reason?: string;
}

/** As whom this chat user decides: `user:dana@acme`. */
export interface ChatPerson {
  person: string;
}

/** The whole picture. What is declared secret is hidden. */
export interface CheckpointDetail {
  id: string;
  run_id: string;
  flow_id: string;
  version: string;
  node_id: string;
  seq: number;
  status: CheckpointStatus;
  created_at: string;
  state_size?: number | null;
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

/** Read from columns alone; no state is loaded. */
export interface CheckpointSummary {
  id: string;
  run_id: string;
  flow_id: string;
  version: string;
  node_id: string;
  seq: number;
  status: CheckpointStatus;
  created_at: string;
  state_size?: number | null;
  has_memory_snapshot?: boolean;
  turn?: number | null;
  pending_input_context?: PendingContext | null;
}

/**
 * A hold under the names of the documents, on the paths that they name. `core_id`: its deployment, or
 * `flow:NAME` where it was started without one.
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
  priority: string;
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
  placed_until: string | null;
  paused_at: string | null;
  started_by: string | null;
  terms: Record<string, unknown>;
  title?: string;
  why?: string;
  due?: string;
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

/** `reason`: uses the right to override where another person has claimed it. */
export interface ClaimHold {
  seconds?: number | null;
  reason?: string | null;
}

/** Counting ends at 10,000. */
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
  /** Seconds to wait for it to come to rest. */
  wait?: number;
}

export interface CreateToken {
  subject: string;
  roles?: string[];
  rights?: Right[];
  groups?: string[];
  expires_at?: string | null;
  note?: string;
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

/** Defaults for holds that do not set these themselves. Durations as written. */
export interface Defaults {
  assignee?: string | null;
  priority?: string | null;
  calendar?: string | null;
  timeout?: string | null;
  on_timeout?: string | null;
  reminder?: string | null;
}

/** `to`: `user:NAME`; `seconds`: for so long. */
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

/** `line` and `column` count from 1; 0: of no place. */
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

/** `was`: what happened. `would_be`: under the rules. `field`: rule, assignee, approval, deadline, ... */
export interface Difference {
  field: string;
  was: string;
  would_be: string;
}

/** `unread`: its history will not say which effects were under way. */
export interface DiscardDead {
  reason?: string;
  unread?: boolean;
}

/** An answer that may be half full. */
export interface DraftWire {
  decision?: unknown;
  response_data?: unknown;
  comment?: unknown;
  request_hash?: string | null;
}

export interface DropQuestion {
  question?: string | null;
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
 * `next`: send it as `after` for the next page; none: the run has ended, and this was its last event.
 * `last`: the number of the last event. `ended`: no more events will follow.
 */
export interface EventPage {
  items: EventWire[];
  next: number | null;
  last: number;
  ended: boolean;
}

/** `number` grows by one with each event of a run; it is the id of the stream's event. */
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

/** As of one moment, over all tenants. Lags: how late the earliest that is due has become. */
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
}

/** A file of a hold. `file` is what the answer has in the field. */
export interface FileWire {
  field: string;
  file: Record<string, unknown>;
}

/** AND across the fields, OR within each. `q`: words as in the inbox, `priority>=high due<2d refund`. */
export interface Filters {
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
}

/** Each live run on another version: whether it would fit this one. Nothing is changed. */
export interface FlowCheck {
  flow: string;
  version: string;
  fits: number;
  breaks: number;
  runs: RunFitWire[];
}

/** `graph`: nodes, edges and policies, as every front end lowers to. */
export interface FlowGraph {
  name: string;
  version: string;
  label: string;
  created_at: string;
  graph: Record<string, unknown>;
}

export interface FlowMismatchWire {
  node: string;
  why: string;
  mend: string;
  soft: boolean;
}

export interface FlowProblem {
  rule: string;
  severity: string;
  message: string;
  node?: string | null;
  edge?: string | null;
  fix?: string | null;
}

/** `valid`: no problem is an error. `version`: the fingerprint that it would have. */
export interface FlowValidation {
  valid: boolean;
  name: string;
  version: string;
  problems: FlowProblem[];
}

/** `loaded`: this server has its code. `workers`: how many live workers do. */
export interface FlowVersion {
  version: string;
  label: string;
  created_at: string;
  nodes: number;
  loaded: boolean;
  workers: number;
}

/** Versions, newest first. */
export interface FlowWire {
  name: string;
  versions: FlowVersion[];
}

/**
 * `content`: the id or the label of an answer, a text of one's own where the question takes that, or an
 * object `{decision, response_data, comment}`. `request_id` or `checkpoint_id`: which question.
 */
export interface GiveInput {
  content: string | Record<string, unknown>;
  request_id?: string | null;
  checkpoint_id?: string | null;
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

/** A calendar or policy as it was written. */
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
 * A hold. `assignee`: as the flow names it; `assignee_resolved`: who that is. `title`, `why` and `due`
 * are in words; `version` is its ETag.
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
  priority: string;
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
  placed_until: string | null;
  paused_at: string | null;
  started_by: string | null;
  terms: Record<string, unknown>;
  title?: string;
  why?: string;
  due?: string;
  idempotent_replay?: boolean;
  run: string;
  flow: string;
  node: string;
  tenant: string;
  deployment: string | null;
  type: string;
  assignee: string | null;
  message_id: string | null;
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

/** A head that was kept before: it must be part of the chain. */
export interface KnownHead {
  seq: number;
  hash: string;
}

/** `in_line`: of those that are ready, how many a limit lets not pass. */
export interface LaneWire {
  lane: string;
  ready: number;
  running: number;
  in_line: number;
  oldest_seconds: number;
}

/** `fixed`: an operator set it; else the flow declares it. */
export interface LimitWire {
  name: string;
  concurrency: number | null;
  rate: string | null;
  fixed: boolean;
  running: number;
  waiting: number;
}

/**
 * `token`: as it is in the link, after `#`; `path`: where it leads below the server's address. `way`:
 * what can be done by it: decide, login (sign in first) or view.
 */
export interface LinkWire {
  token: string;
  path: string;
  way: string;
}

/**
 * `outcome`: resolved, voted, unclear (nothing was decided, and the sender was told why), refused or
 * ignored (nothing was decided, and no one was notified).
 */
export interface MailTaken {
  outcome: string;
  why?: string;
  checkpoint_id?: string | null;
}

export interface NewComment {
  text: string;
}

/** `to`: one person, `user:NAME`. `decide`: whether it may decide, as far as the hold allows links to. */
export interface NewLink {
  to: string;
  decide?: boolean;
  seconds?: number;
}

/** `filters`: as `GET /v1/holds` takes them. `shared`: for all of the tenant. */
export interface NewView {
  title: string;
  filters: Filters;
  order?: HoldOrder | null;
  shared?: boolean;
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

export interface OptionWire {
  id: string;
  label: string;
  variant?: string;
  default?: boolean;
  requires_comment?: boolean;
}

/** `next` leads to the page after this one; without it this was the last. */
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

/** A run that waits for a person, and what it asks. */
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
 * last one that was completed. `completed_nodes` are in order: one that was visited again is there again.
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
  diagnostics?: DiagnosticWire[];
}

/** A decision that stands in `seconds`, unless it is taken back; none: as the hold says. */
export interface PlaceDecision {
  decision?: string | null;
  resolution?: string | Record<string, unknown> | null;
  response_data?: unknown;
  comment?: string | null;
  request_hash?: string | null;
  reason?: string | null;
  seconds?: number | null;
}

export interface PresenceBeat {
  editing?: boolean;
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

export interface PublishSkill {
  instructions?: string;
  tools?: SkillTool[];
  description?: string;
  data?: Record<string, unknown>;
}

/** `substitute` acts for them meanwhile. */
export interface PutAway {
  substitute: string;
  since?: string | null;
  until?: string | null;
}

/** With exactly these members, each known to the directory. */
export interface PutCircle {
  members: string[];
  name?: string;
}

export interface PutDeployment {
  flow: string;
  version?: string;
  mode?: string;
  skills?: string[];
  policies?: string[];
  on_changed_skill?: string;
  defaults?: Defaults;
}

export interface PutPerson {
  email?: string;
  name?: string;
  active?: boolean;
  language?: string;
  zone?: string;
}

/** Exactly one of `cron`, `every` and `at`. What is not given is as for a new schedule. */
export interface PutSchedule {
  flow: string;
  cron?: string | null;
  every?: string | null;
  at?: string | null;
  zone?: string;
  anchor?: string | null;
  start?: string | null;
  end?: string | null;
  jitter?: string | null;
  missed?: "all" | "last" | "skip";
  /** `15m`, `90s`, `1h30m` */
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

/** `key`: its accelerator; `id`: what the hold calls it. */
export interface QuestionOption {
  id: string;
  key: string;
  label: string;
  to?: string | null;
}

/**
 * `id` is the hold's: it can be decided as one too. `type`: yes_no, multiple_choice, freeform or
 * confirmation; `approval` and others of questions that are no gate's.
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

export interface Reason {
  reason?: string | null;
}

/** `assignee`: `user:dana@acme`, `group:finance`; empty: unassigned. */
export interface ReassignHold {
  assignee?: string | null;
  expires_at?: string | null;
  reason?: string | null;
}

/** `graph`: a compiled flow; or `flow`: a file that the operator allows, which is loaded. */
export interface RegisterFlow {
  graph?: Record<string, unknown> | null;
  flow?: string | null;
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

/** `question`: which one, where several are open. */
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
  mode?: "fork" | "resume" | "rewind";
  accept_loss?: boolean;
}

/**
 * What a credential may do. A route names the one that it needs; `holds.permissions.check` asks further.
 *
 * Older names (`scaicore:manage`) are read as the ones that replaced them, so that stored tokens keep
 * their rights.
 */
export type Right = "admin:manage" | "audit:read" | "flows:read" | "flows:write" | "holds:manage" | "holds:override" | "holds:read" | "holds:resolve" | "holds:write" | "runs:read" | "runs:write" | "schedules:read" | "schedules:write";

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
}

export interface RunFitWire {
  run_id: string;
  status: RunStatus;
  version: string;
  fits: boolean;
  misfits: FlowMismatchWire[];
  renamed: Record<string, string>;
}

/** `checkpoint_id`: of the newest question that it waits with, where it waits for a person. */
export interface RunMetadata {
  checkpoint_id?: string | null;
  checkpoint_ids?: string[];
}

/** What a run came to, or where it stands. What is declared secret is hidden. */
export interface RunResult {
  id: string;
  status: RunStatus;
  state: Record<string, unknown>;
  artifacts: Record<string, unknown>;
  error?: string | null;
  open_holds?: string[];
}

export type RunStatus = "cancelled" | "completed" | "failed" | "pending" | "pending_input" | "resumable" | "running" | "waiting";

/** `status`: pending, running, waiting, pending_input, resumable, completed, failed or cancelled. */
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

/** The run exists as soon as a worker that serves the flow has seen it. */
export interface ScheduleTrigger {
  run_id: string;
}

/** `next_at`: when it fires next, with its jitter; null where it is paused or over. */
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

/** Who the caller is. `csrf`: what each change with this session has to show; none for tokens. */
export interface SessionWire {
  subject: string;
  tenant: string;
  rights: Right[];
  groups: string[];
  roles: string[];
  method: string;
  csrf?: string | null;
}

/** What is not given is not limited; a concurrency of 0 stops the flow. `rate`: `100/min`. */
export interface SetLimit {
  concurrency?: number | null;
  rate?: string | null;
}

/** `policy`: as it would be written; none: those in the store. `since`: of holds that opened from then. */
export interface SimulatePolicies {
  policy?: Record<string, unknown> | null;
  since?: string | null;
  flows?: string[];
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

/**
 * How the server and its store are. `weak`: settings that weaken what a commit promises, each with what
 * can be lost. `problems`: what is broken in the store.
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

/**
 * `dot`: the source. `context`: values that it begins with. `simulate`: no model is asked. `strict`: the
 * grammar is taken at its word.
 */
export interface SubmitPipeline {
  dot: string;
  context?: Record<string, unknown>;
  simulate?: boolean;
  strict?: boolean;
  thread?: string | null;
  lane?: string | null;
}

/** `content`: what is said. Without it, a `content` or `message` of the input, if that is a text. */
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
  /** Seconds to wait for it to come to rest. */
  wait?: number;
  content?: string | Record<string, unknown> | null;
  request_id?: string | null;
}

/**
 * Visits in the order in which they began. `left_out`: older ones that are not shown. `damage`: why the
 * run's journal cannot be folded, where that is so.
 */
export interface TimelineWire {
  run: string;
  items: VisitWire[];
  nodes: Record<string, NodeTotals>;
  edges: Record<string, number>;
  left_out: number;
  damage?: string;
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

/** `graph`: a compiled flow; or `flow`: a flow of this server, or a file that it may load. */
export interface ValidateFlow {
  graph?: Record<string, unknown> | null;
  flow?: string | null;
}

export interface VerifyAudit {
  against?: KnownHead | null;
}

/** `count`: how many of its holds you may see, where it was asked for; counting ends at 10,000. */
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

/** One visit of one node, with all its attempts. */
export interface VisitWire {
  node: string;
  scope: string;
  visit: number;
  state: string;
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
}

/** `kind`: person, time or retry. Open while `until` is null. */
export interface WaitWire {
  kind: string;
  since: string;
  until?: string | null;
  wake_at?: string | null;
  about?: string;
  hold?: string;
  by?: string;
  decision?: unknown;
}

/** `outcome`: resolved, voted (others have to decide too), already_decided, duplicate or ignored. */
export interface WebhookTaken {
  outcome: string;
  checkpoint_id?: string | null;
  status?: string | null;
}

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
  hot: number;
  draining: boolean;
  skew_seconds: number;
  records: number;
  ended: number;
  records_per_second: number;
  ended_per_second: number;
}

export interface YankReason {
  reason?: string;
}
