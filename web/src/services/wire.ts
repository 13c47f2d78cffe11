/** Enumerations of the server that a table of words must cover. */
export type { HoldStatus, RunStatus } from "@client";
