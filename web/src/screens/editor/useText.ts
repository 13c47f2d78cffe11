/** The text of the document while it is edited: undo, what could be read of it last, and what is not saved. */
import { useCallback, useReducer } from "react";
import type { FlowData } from "@/models/documentData";
import { type Format, type TextProblem, readText, rewriteText } from "@/models/documentText";

type State = { format: Format; text: string; data: FlowData; problem: TextProblem | null; past: string[]; future: string[]; tag: string };
type Make = (data: FlowData) => FlowData;
type Action = { kind: "set"; text: string; tag: string } | { kind: "change"; make: Make; tag: string } | { kind: "undo" } | { kind: "redo" };
const MOST = 200;

export type EditedText = {
  text: string;
  data: FlowData;
  problem: TextProblem | null;
  canUndo: boolean;
  canRedo: boolean;
  /** Changes with the same tag that follow each other are undone together. */
  setText: (text: string, tag?: string) => void;
  change: (make: Make, tag?: string) => void;
  undo: () => void;
  redo: () => void;
};

/** With what can be read of the text; else with what could be read last. */
function withText(state: State, text: string, more: Pick<State, "past" | "future" | "tag">): State {
  const read = readText(text, state.format);
  return { ...state, ...more, text, data: read.data ?? state.data, problem: read.problem };
}

function reduce(state: State, action: Action): State {
  if (action.kind === "change") {
    // From the canvas, which shows what could be read last: a text with an error is repaired first.
    if (state.problem !== null) return state;
    return reduce(state, { kind: "set", text: rewriteText(state.text, state.format, action.make(state.data)), tag: action.tag });
  }
  if (action.kind === "set") {
    if (action.text === state.text) return state;
    const isSame = action.tag !== "" && action.tag === state.tag;
    return withText(state, action.text, { past: isSame ? state.past : [...state.past, state.text].slice(-MOST), future: [], tag: action.tag });
  }
  const [from, to] = action.kind === "undo" ? [state.past, state.future] : [state.future, state.past];
  const text = from.at(-1);
  if (text === undefined) return state;
  const [left, more] = [from.slice(0, -1), [...to, state.text]];
  return withText(state, text, action.kind === "undo" ? { past: left, future: more, tag: "" } : { past: more, future: left, tag: "" });
}

function begun({ text, format }: { text: string; format: Format }): State {
  return withText({ format, text, data: {}, problem: null, past: [], future: [], tag: "" }, text, { past: [], future: [], tag: "" });
}

export function useText(first: string, format: Format): EditedText {
  const [state, act] = useReducer(reduce, { text: first, format }, begun);
  return {
    text: state.text,
    data: state.data,
    problem: state.problem,
    canUndo: state.past.length > 0,
    canRedo: state.future.length > 0,
    setText: useCallback((text: string, tag = "") => act({ kind: "set", text, tag }), []),
    change: useCallback((make: Make, tag = "") => act({ kind: "change", make, tag }), []),
    undo: useCallback(() => act({ kind: "undo" }), []),
    redo: useCallback(() => act({ kind: "redo" }), []),
  };
}
