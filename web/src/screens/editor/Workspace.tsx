/** One document being edited: canvas or text, the panel beside it, and what is done with it. */
import { useSearch } from "@tanstack/react-router";
import { Suspense, lazy, useCallback, useMemo, useState } from "react";
import { useRight } from "@/app/useSession";
import { Skeleton } from "@/components/Skeleton";
import { NOTHING, type Selection, still } from "@/models/canvasSelection";
import { groupsOf, notesOf } from "@/models/canvasNotes";
import { MOST_DRAWN, boxAt, documentView, freePort, movedInto } from "@/models/canvasView";
import { type FlowData, type Point, addNode, connect, moveNodes, nodesOf, removeParts } from "@/models/documentData";
import { PARENTS, nodeType } from "@/models/nodeTypes";
import type { EditedDocument } from "@/services/documents";
import { Canvas } from "./Canvas";
import type { Marks } from "./drawnGraph";
import { Palette } from "./Palette";
import { Panel, type Part } from "./Panel";
import { SaveConflict } from "./SaveConflict";
import { t } from "./text";
import { Toolbar } from "./Toolbar";
import { useBoxes, useCheck } from "./useCheck";
import { useEditorKeys } from "./useEditorKeys";
import { useRunStates } from "./useRunStates";
import { useSaved } from "./useSaved";

const TextView = lazy(async () => ({ default: (await import("./TextView")).TextView }));
const DeployDialog = lazy(async () => ({ default: (await import("./DeployDialog")).DeployDialog }));
const ImportDialog = lazy(async () => ({ default: (await import("./ImportDialog")).ImportDialog }));
const BELOW = 128;

export function Workspace({ given }: { given: EditedDocument }) {
  const search = useSearch({ strict: false });
  const mayWrite = useRight("flows:write");
  const saved = useSaved(given);
  const { edited, name, format } = saved;
  const { data, change } = edited;
  const [chosen, setSelection] = useState(NOTHING);
  const [part, setPart] = useState<Part>("node");
  const [isDeploying, setDeploying] = useState(false);
  const [isImporting, setImporting] = useState(false);
  const [fit, setFit] = useState(0);
  const { check, isSettled } = useCheck(edited.text, format, mayWrite);
  const nodes = useMemo(() => nodesOf(data), [data]);
  const isLarge = nodes.length > MOST_DRAWN;
  const isArranged = nodes.some((each) => each.position === null);
  const { boxes, isReady } = useBoxes(edited.text, format, isArranged && !isLarge);
  const view = useMemo(() => documentView(data, boxes, check.data?.ports ?? {}), [data, boxes, check.data?.ports]);
  const selection = useMemo(() => still(chosen, view), [chosen, view]);
  const extras = useMemo(() => ({ notes: notesOf(data, view), groups: groupsOf(data, view) }), [data, view]);
  const { states, taken } = useRunStates(search.run ?? "");
  const problems = useMemo(() => check.data?.problems ?? [], [check.data?.problems]);
  const marks = useMemo<Marks>(() => {
    const counts = new Map<string, number>();
    for (const each of problems) if (each.node) counts.set(each.node, (counts.get(each.node) ?? 0) + 1);
    const errors = new Set(problems.flatMap((each) => (each.severity === "error" && each.node ? [each.node] : [])));
    return { states, taken, problems: counts, errors, edgeProblems: new Set(problems.map((each) => each.edge).filter(Boolean)) };
  }, [states, taken, problems]);

  const select = useCallback((next: Selection) => {
    setSelection(next);
    if (next.nodes.length > 0 || next.edges.length > 0) setPart((old) => (old === "form" || old === "problems" ? old : "node"));
  }, []);
  // Once a person places a node, those that the server placed stay where they are.
  const placed = (old: FlowData) => (isArranged ? moveNodes(old, new Map(view.nodes.map((each) => [each.id, each.position]))) : old);
  const add = (type: string, at: Point | null) => {
    const near = view.nodes.find((each) => each.id === selection.nodes[0]);
    const place = at ?? (near ? { x: near.position.x, y: near.position.y + BELOW } : { x: 0, y: Math.max(0, ...view.nodes.map((each) => each.position.y)) + BELOW });
    const box = at === null ? null : boxAt(view, at);
    const parent = at === null ? (near && PARENTS.has(near.type) ? near.id : (near?.parent ?? "")) : (box?.id ?? "");
    const added = addNode(placed(data), type, box ? box.inside : parent && near?.id === parent ? { x: 24, y: 56 } : place, nodeType(type).start, parent);
    // From the selected node on, where it has no edge yet.
    const isNext = at === null && near !== undefined && near.id !== parent && near.type !== "end" && type !== "start";
    const port = isNext ? freePort(near.ports, view.edges.filter((each) => each.source === near.id).map((each) => each.port)) : null;
    change(() => (isNext && port !== null ? connect(added.data, near.id, port, added.id) : added.data));
    select({ nodes: [added.id], edges: [] });
  };
  const remove = (gone: Selection) => {
    change((old) => removeParts(old, gone.nodes, gone.edges));
    setSelection(NOTHING);
  };
  const edit = mayWrite && edited.problem === null ? {
    move: (places: Map<string, Point>) => change((old) => moveNodes(placed(old), movedInto(view, places))),
    connect: (source: string, port: string, target: string) => change((old) => connect(old, source, port, target)),
    drop: add,
  } : undefined;
  useEditorKeys({ edited, selection, onSave: saved.save, onSelect: select, onRemove: remove, isChanged: saved.isChanged, mayWrite });
  const isText = search.view === "text" || isLarge;
  return (
    <>
      <Toolbar saved={saved} problems={problems} isChecking={!isSettled} mayWrite={mayWrite} isText={isText} onDeploy={() => setDeploying(true)} onImport={() => setImporting(true)} onArranged={() => setFit((old) => old + 1)} onProblems={() => { setPart("problems"); void check.refetch(); }} />
      {isLarge ? <p className="editor-notice">{t("tooLarge", { count: nodes.length, most: MOST_DRAWN })}</p> : null}
      {mayWrite ? null : <p className="editor-notice">{t("viewerOnly")}</p>}
      <SaveConflict saved={saved} />
      {edited.problem ? <p className="editor-notice wrong" role="alert">{t("yamlError", { line: edited.problem.line, why: edited.problem.message })}</p> : null}
      <div className={edit && !isText ? "editor-body" : "editor-body without-palette"}>
        {edit && !isText ? <Palette onAdd={(type) => add(type, null)} /> : null}
        {isText ? (
          <Suspense fallback={<Skeleton />}>
            <TextView text={edited.text} format={format} problems={problems} isReadOnly={!mayWrite} onChange={edited.setText} />
          </Suspense>
        ) : !isReady ? (
          <Skeleton />
        ) : (
          <Canvas name={name} view={view} marks={marks} selection={selection} onSelect={select} fit={fit} extras={extras} {...(edit ? { edit } : {})} />
        )}
        <Panel part={part} onPart={setPart} edited={edited} view={view} selection={selection} onSelect={select} problems={problems} isEditable={edit !== undefined} flow={name} run={search.run ?? ""} onRemove={remove} />
      </div>
      {isImporting ? (
        <Suspense fallback={null}>
          <ImportDialog saved={saved} onClose={() => setImporting(false)} onReplaced={() => { setSelection(NOTHING); setFit((old) => old + 1); }} />
        </Suspense>
      ) : null}
      {isDeploying ? (
        <Suspense fallback={null}>
          <DeployDialog saved={saved} problems={problems} onClose={() => setDeploying(false)} onProblems={() => { setDeploying(false); setPart("problems"); }} />
        </Suspense>
      ) : null}
    </>
  );
}
