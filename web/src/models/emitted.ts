/** The live output of a step: its streamed text, and its lines of log. */

import { writeJson } from "./json";

export type Piece = { kind: string; at: string; data: unknown; attempt: number };
export type LogLine = { at: string; level: string; text: string; attempt: number };

/** Texts are written one after the other, as tokens of a model are. What an earlier attempt wrote is void. */
export function streamedText(pieces: readonly Piece[], attempts: number): string {
  return pieces.map((each) => (isLog(each) || each.attempt < attempts ? "" : textOf(each.data))).join("");
}

export function logLines(pieces: readonly Piece[]): LogLine[] {
  return pieces.filter(isLog).map((each) => {
    const data = typeof each.data === "object" && each.data !== null ? (each.data as Record<string, unknown>) : {};
    const text = typeof each.data === "string" ? each.data : textOf(data["text"] ?? each.data);
    return { at: each.at, level: typeof data["level"] === "string" ? data["level"] : "", text, attempt: each.attempt };
  });
}

function isLog(piece: Piece): boolean {
  return piece.kind === "log" || piece.kind === "progress" || piece.kind === "tool";
}

function textOf(data: unknown): string {
  if (typeof data === "string") return data;
  if (typeof data === "object" && data !== null && "text" in data && typeof data.text === "string") return data.text;
  return data === undefined ? "" : writeJson(data);
}
