/** The form of a review: its sections in order, each with its settings, and how the reviewer sees it. */
import { useRef, useState } from "react";
import { sampleOf } from "@/models/canvasView";
import { type Config, type FlowNode, isRecord, setInConfig } from "@/models/documentData";
import { newSection } from "@/models/formSections";
import { renamedPorts } from "@/models/renamed";
import type { Problem } from "@/services/documents";
import { FormSample } from "./FormSample";
import { FieldProblems } from "./Problems";
import { SectionEditor } from "./SectionEditor";
import { t } from "./text";
import type { EditedText } from "./useText";

type BuilderProps = { node: FlowNode; edited: EditedText; problems: Problem[]; isEditable: boolean };
const TYPES = ["context", "input", "decision"] as const;

export function FormBuilder({ node, edited, problems, isEditable }: BuilderProps) {
  const given = node.config["sections"];
  const sections: Config[] = Array.isArray(given) ? given.filter(isRecord) : [];
  const [open, setOpen] = useState(-1);
  const list = useRef<HTMLOListElement>(null);
  const set = (next: Config[], tag: string) => edited.change((old) => renamedPorts(old, setInConfig(old, node.id, "sections", next), node.id), `${node.id}.sections.${tag}`);
  const move = (at: number, by: number) => {
    set(sections.toSpliced(at, 1).toSpliced(at + by, 0, sections[at]!), "");
    setOpen((old) => (old === at ? at + by : old));
  };
  const add = (type: (typeof TYPES)[number]) => {
    set([...sections, newSection(type, sections)], "");
    setOpen(sections.length);
    requestAnimationFrame(() => list.current?.querySelector<HTMLElement>(".section-fields :is(input, select, textarea)")?.focus());
  };
  const of = (at: number) => problems.filter((each) => each.field.startsWith(`sections[${at}]`));
  return (
    <div className="form-builder">
      <fieldset className="settings" disabled={!isEditable}>
        <legend className="muted small">{t("formHelp")}</legend>
        <FieldProblems problems={problems.filter((each) => each.field === "sections")} id="form-problems" />
        {sections.length === 0 ? <p className="muted">{t("emptyForm")}</p> : null}
        <ol ref={list} className="section-list">
          {sections.map((each, at) => (
            <SectionEditor
              key={at}
              section={each}
              at={at}
              count={sections.length}
              isOpen={open === at}
              problems={of(at)}
              onOpen={() => setOpen(open === at ? -1 : at)}
              onMove={(by) => move(at, by)}
              onRemove={() => { set(sections.toSpliced(at, 1), ""); setOpen(-1); }}
              onChange={(next, key) => set(sections.with(at, next), `${at}.${key}`)}
            />
          ))}
        </ol>
        <div className="add-section">
          <span className="small muted">{t("addSection")}</span>
          {TYPES.map((each) => <button key={each} type="button" className="button" onClick={() => add(each)}>{t(each)}</button>)}
        </div>
      </fieldset>
      <FormSample sections={sections} prompt={String(node.config["prompt"] ?? "")} sample={sampleOf(edited.data)} />
    </div>
  );
}
