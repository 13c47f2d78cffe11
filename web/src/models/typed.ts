/** What a person typed into a form, beside what was proposed. */
import { DATA, type Form, type Section, type Values, fieldAt, isEdited, isEmpty, isWhole } from "./form";
import { changesBetween } from "./state";
import { valueText } from "./values";

export type Typed = { edits: Values; comment: string };
export type TypedField = { field: string; label: string; value: unknown };

/** The fields whose value is not the proposed one. */
export function typedFields(form: Form, values: Values): TypedField[] {
  const inputs = form.sections.filter((each) => each.type !== "context");
  return inputs.filter((each) => isTyped(each, values[each.field])).map((each) => ({ field: each.field, label: each.label, value: shownIn(each, values[each.field]) }));
}

/** As the control shows it: what was chosen has its label. */
function shownIn({ options }: Section, value: unknown): unknown {
  const labelOf = (each: unknown): unknown => options.find((one) => one.id === each)?.label ?? each;
  return Array.isArray(value) ? value.map(labelOf) : labelOf(value);
}

function isTyped(section: Section, value: unknown): boolean {
  return section.hasProposal ? isEdited(section, value) : !isEmpty(value);
}

/** As lines of text, to be copied. */
export function typedText(fields: readonly TypedField[], comment: string): string {
  const lines = fields.map((each) => `${each.label}: ${valueText(each.value)}`);
  return [...lines, ...(comment.trim() ? [comment.trim()] : [])].join("\n");
}

export type FieldFault = { field: string; message: string };

/** Errors of the server by the field that shows them: `lines[0].pieces` is shown at `lines`. */
export function errorsByField(form: Form, faults: readonly FieldFault[]): Record<string, string> {
  const found: Record<string, string> = {};
  for (const { field, message } of faults) {
    const place = form.kind === "arguments" ? field.replace(/^(modifications\.)?arguments\.?/, "") : field;
    const outer = isWhole(form) ? DATA : fieldAt(form, place) || (/^[^.[]*/.exec(place)?.[0] ?? "");
    const text = outer === place ? message : `${place}: ${message}`;
    found[outer] = found[outer] ? `${found[outer]} ${text}` : text;
  }
  return found;
}

export type Content = { title: string; prompt: string; assignee: string; priority: string; expiresAt: string | null; context: unknown; options: readonly { id: string; label: string }[] };
export type ContentChange = { what: "title" | "prompt" | "assignee" | "priority" | "expiresAt" | "options" | "context"; path: string; before: unknown; after: unknown };

const PLAIN = ["title", "prompt", "assignee", "priority", "expiresAt"] as const;

/** The question as it was read, with what the reader changed since, from `before` to `after`. */
export function withOwnChange<C extends Content & { version: number }>(read: C, before: C, after: C): C {
  // Others have changed it meanwhile: who did what cannot be told apart.
  if (after.version !== before.version + 1) return read;
  const own = PLAIN.filter((what) => before[what] !== after[what]).map((what) => [what, after[what]] as const);
  return { ...read, ...Object.fromEntries(own) };
}

/** What differs between the question that was read and the one that is open now. */
export function contentChanges(before: Content, after: Content): ContentChange[] {
  const plain = PLAIN
    .filter((what) => before[what] !== after[what] && !(what === "prompt" && before.prompt === before.title && after.prompt === after.title))
    .map((what) => ({ what, path: "", before: before[what], after: after[what] }));
  const labels = (content: Content) => content.options.map((each) => each.label || each.id).join(", ");
  const options = labels(before) === labels(after) ? [] : [{ what: "options" as const, path: "", before: labels(before), after: labels(after) }];
  const context = changesBetween(before.context, after.context).map((each) => ({ what: "context" as const, path: each.path, before: each.before, after: each.after }));
  return [...plain, ...options, ...context];
}
