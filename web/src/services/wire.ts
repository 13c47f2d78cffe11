/** Enumerations of the server that a table of words must cover. */
import type { HoldWire, StepWire, VisitWire } from "@client";

export type { HoldStatus, HoldView, RunStatus } from "@client";
export type VisitState = VisitWire["state"];
export type Effect = Exclude<StepWire["effect"], "">;
export type Priority = HoldWire["priority"];
