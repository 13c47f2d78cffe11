/** Flow documents: drafts, the checker, places of nodes, differences, and deployment. */
import type { EditableDocument, FlowChange, FlowPartDiff, FlowProblem, FlowValidation, SavedDocument } from "@client";
import { plainText } from "@/models/values";
import { client, failureOf, rowsOf } from "./client";
import { personOf } from "./holds";

export type Format = "yaml" | "json";
/** `etag`: of what the server has. `savedBy` is empty where nothing was saved since it was deployed. */
export type EditedDocument = { name: string; source: string; format: Format; etag: string; savedBy: string; savedAt: string; version: string };
export type DocumentItem = { name: string; savedBy: string; savedAt: string; version: string };
export type Problem = { rule: string; severity: "error" | "warning" | "hint"; message: string; fix: string; node: string; edge: string; field: string; path: string; line: number | null; column: number | null };
export type Checked = { isValid: boolean; version: string; problems: Problem[]; ports: Record<string, string[]> };
export type Box = { x: number; y: number; width: number; height: number };
export type Change = { path: string; kind: string; before: unknown; after: unknown };
export type PartDiff = { id: string; change: string; changes: Change[] };
export type Diff = { isSame: boolean; nodes: PartDiff[]; edges: PartDiff[]; settings: Change[]; layout: Change[] };

export const NEW = "new";

export async function listDocuments(): Promise<DocumentItem[]> {
  const found: DocumentItem[] = [];
  let cursor: string | undefined;
  do {
    const page = await client.listDocuments({ limit: 200, cursor });
    found.push(...rowsOf(page.items, ["name"], itemOf));
    cursor = page.next ?? undefined;
  } while (cursor);
  return found;
}

/** null: there is no document of this name. */
export async function getDocument(name: string): Promise<EditedDocument | null> {
  try {
    const found = await client.request("getDocument", name);
    return documentOf(found.body as EditableDocument, found.etag ?? "");
  } catch (error) {
    if (failureOf(error).kind === "missing") return null;
    throw error;
  }
}

/** Refused with `changed` if another person has saved since this one was read. */
export async function saveDocument(name: string, source: string, format: Format, etag: string): Promise<EditedDocument> {
  const found = await client.request("saveDocument", name, { source, format }, { ifMatch: etag });
  return documentOf(found.body as EditableDocument, found.etag ?? "");
}

/** Refused with `changed` if another person has saved since this one was read. */
export async function discardDocument(name: string, etag: string): Promise<void> {
  await client.discardDocument(name, { ifMatch: etag });
}

export async function checkText(source: string, format: Format): Promise<Checked> {
  return checkedOf(await client.validateFlow({ source, format }));
}

export async function arrangeText(source: string, format: Format): Promise<Record<string, Box>> {
  return (await client.arrangeFlow({ source, format })).nodes;
}

export async function arrangeGraph(graph: Record<string, unknown>): Promise<Record<string, Box>> {
  return (await client.arrangeFlow({ graph })).nodes;
}

export async function getFlowSchema(): Promise<Record<string, unknown>> {
  return client.getFlowSchema("1");
}

/** To the current version; null if there is none. */
export async function diffToCurrent(flow: string, source: string, format: Format): Promise<Diff | null> {
  try {
    const found = await client.diffFlow(flow, { from: "current", source, format });
    return { isSame: found.same, nodes: found.nodes.map(partOf), edges: found.edges.map(partOf), settings: found.settings.map(changeOf), layout: found.layout.map(changeOf) };
  } catch (error) {
    if (failureOf(error).kind === "missing") return null;
    throw error;
  }
}

/** What the command line calls NEW. */
const NEW_VERSION = "the new version";

/** The live runs that would not fit this document. */
export async function brokenRuns(source: string, format: Format): Promise<{ run: string; node: string; why: string }[]> {
  const found = await client.checkDocument({ source, format });
  return found.runs.filter((each) => !each.fits).map((each) => ({ run: each.run, node: each.misfits[0]?.node ?? "", why: (each.misfits[0]?.why ?? "").replaceAll(/\bNEW\b/g, NEW_VERSION) }));
}

/** The version. */
export async function deployText(source: string, format: Format): Promise<string> {
  return (await client.registerFlow({ source, format, activate: true })).version;
}

function documentOf(wire: EditableDocument, etag: string): EditedDocument {
  return { ...itemOf(wire), source: wire.source, format: wire.format, etag };
}

function itemOf(wire: SavedDocument): DocumentItem {
  return { name: wire.name, savedBy: personOf(wire.saved_by ?? ""), savedAt: wire.saved_at ?? "", version: wire.version ?? "" };
}

function checkedOf(wire: FlowValidation): Checked {
  return { isValid: wire.valid, version: wire.version, problems: wire.problems.map(problemOf), ports: wire.ports ?? {} };
}

function problemOf(wire: FlowProblem): Problem {
  const severity = wire.severity === "warning" || wire.severity === "hint" ? wire.severity : "error";
  return {
    rule: wire.rule,
    severity,
    message: plainText(wire.message),
    fix: plainText(wire.fix ?? ""),
    node: wire.node ?? "",
    edge: wire.edge ?? "",
    field: wire.field ?? "",
    path: wire.path ?? "",
    line: wire.line ?? null,
    column: wire.column ?? null,
  };
}

function partOf(wire: FlowPartDiff): PartDiff {
  return { id: wire.id, change: wire.change, changes: wire.changes.map(changeOf) };
}

function changeOf(wire: FlowChange): Change {
  return { path: wire.path, kind: wire.kind, before: wire.before, after: wire.after };
}
