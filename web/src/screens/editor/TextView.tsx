/** The text of the document in CodeMirror, with the server's problems at their places. Loaded when it is opened. */
import { json } from "@codemirror/lang-json";
import { yaml } from "@codemirror/lang-yaml";
import { HighlightStyle, syntaxHighlighting } from "@codemirror/language";
import { type Diagnostic, lintGutter, setDiagnostics } from "@codemirror/lint";
import { Annotation, EditorState } from "@codemirror/state";
import { tags } from "@lezer/highlight";
import { EditorView, basicSetup } from "codemirror";
import { useEffect, useEffectEvent, useRef } from "react";
import { styleNonce } from "@/app/nonce";
import type { Format, Problem } from "@/services/documents";
import { codeEditor } from "@/locales/en/codeEditor";
import { textOf } from "@/locales/text";
import { t } from "./text";

type TextProps = { text: string; format: Format; problems: Problem[]; isReadOnly: boolean; onChange: (text: string, tag: string) => void };

const phrase = textOf(codeEditor);
const PHRASES = Object.fromEntries((Object.keys(codeEditor) as (keyof typeof codeEditor)[]).map((name) => [name, phrase(name)]));

export function TextView({ text, format, problems, isReadOnly, onChange }: TextProps) {
  const place = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView | null>(null);
  const changed = useEffectEvent((next: string) => onChange(next, "text"));
  const first = useEffectEvent(() => text);
  useEffect(() => {
    const made = new EditorView({
      parent: place.current!,
      state: EditorState.create({
        doc: first(),
        extensions: [
          EditorView.cspNonce.of(styleNonce),
          basicSetup,
          format === "json" ? json() : yaml(),
          lintGutter(),
          EditorState.phrases.of(PHRASES),
          EditorState.readOnly.of(isReadOnly),
          EditorView.contentAttributes.of({ "aria-label": t(format), tabindex: "0" }),
          EditorView.updateListener.of((update) => {
            if (update.docChanged && update.transactions.some((each) => !each.annotation(FROM_OUTSIDE))) changed(update.state.doc.toString());
          }),
          COLOURS,
          syntaxHighlighting(WORDS),
        ],
      }),
    });
    view.current = made;
    return () => made.destroy();
  }, [format, isReadOnly]);
  useEffect(() => {
    const now = view.current;
    if (now && now.state.doc.toString() !== text) now.dispatch({ changes: { from: 0, to: now.state.doc.length, insert: text }, annotations: FROM_OUTSIDE.of(true) });
  }, [text]);
  useEffect(() => {
    const now = view.current;
    if (now) now.dispatch(setDiagnostics(now.state, problems.flatMap((each) => diagnosticOf(now.state, each))));
  }, [problems]);
  return <div className="text-view" ref={place} />;
}

const FROM_OUTSIDE = Annotation.define<boolean>();

function diagnosticOf(state: EditorState, problem: Problem): Diagnostic[] {
  if (problem.line === null || problem.line > state.doc.lines) return [];
  const line = state.doc.line(problem.line);
  const from = Math.min(line.from + Math.max(0, (problem.column ?? 1) - 1), line.to);
  const message = problem.fix ? `${problem.message}. ${t("fix", { fix: problem.fix })}` : problem.message;
  return [{ from, to: line.to, severity: problem.severity === "hint" ? "info" : problem.severity, message }];
}

const WORDS = HighlightStyle.define([
  { tag: [tags.definition(tags.propertyName), tags.propertyName, tags.keyword], color: "var(--running)" },
  { tag: [tags.string, tags.special(tags.string)], color: "var(--completed)" },
  { tag: [tags.number, tags.bool, tags.null, tags.atom], color: "var(--sleeping)" },
  { tag: tags.comment, color: "var(--muted)", fontStyle: "italic" },
  { tag: [tags.punctuation, tags.separator, tags.bracket, tags.squareBracket, tags.brace], color: "var(--muted)" },
]);

const COLOURS = EditorView.theme({
  "&": { height: "100%", fontSize: "13px", backgroundColor: "var(--card)", color: "var(--text)" },
  ".cm-content, .cm-gutters": { fontFamily: "var(--mono)" },
  ".cm-gutters": { backgroundColor: "var(--ground)", color: "var(--muted)", borderRight: "1px solid var(--line)" },
  ".cm-activeLine, .cm-activeLineGutter": { backgroundColor: "color-mix(in srgb, var(--muted-ground) 55%, transparent)" },
  ".cm-cursor": { borderLeftColor: "var(--text)" },
  "&.cm-focused": { outline: "none" },
  ".cm-selectionBackground, &.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground": { backgroundColor: "var(--running-ground)" },
  ".cm-tooltip": { backgroundColor: "var(--card)", color: "var(--text)", border: "1px solid var(--line)" },
});
