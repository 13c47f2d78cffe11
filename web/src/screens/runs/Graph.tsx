/** The server's drawing of the run. Its states are those of the record, and a node opens its last step. */
import { useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { type KeyboardEvent, type ReactNode, createElement, useMemo } from "react";
import { Notice, Problem } from "@/components/Problem";
import { Skeleton } from "@/components/Skeleton";
import { type Point, nodeOfTitle, nodeStatesAt, targetOfTitle } from "@/models/timeline";
import { type Visit, getDrawing } from "@/services/runs";
import { visitWord } from "@/words";
import { t } from "./text";

type GraphProps = { run: string; visits: Visit[]; point: Point | null; step: string };

export function Graph({ run, visits, point, step }: GraphProps) {
  const drawing = useQuery({ queryKey: ["run", run, "drawing"], queryFn: () => getDrawing(run), placeholderData: (old) => old });
  const parsed = useMemo(() => (drawing.data === undefined ? null : documentOf(drawing.data)), [drawing.data]);
  const navigate = useNavigate();
  if (drawing.isPending) return <Skeleton />;
  if (drawing.isError) return <Problem error={drawing.error} onRetry={() => void drawing.refetch()} />;
  if (parsed === null) return <Notice title={t("noGraph")} />;
  const names = [...new Set(visits.map((each) => each.node))];
  const shown: Shown = {
    states: point === null ? null : nodeStatesAt(visits, point),
    name: (title) => nodeOfTitle(title, names),
    target: (title) => targetOfTitle(title, names),
    step,
    open: (node) => {
      const seq = visits.findLast((each) => each.node === node && each.seq >= 0)?.seq;
      if (seq !== undefined) void navigate({ to: ".", search: (old: object) => ({ ...old, step: seq }), resetScroll: false });
    },
  };
  return (
    // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- what scrolls must be reached by keys
    <section className="run-graph panel" aria-label={t("graph")} tabIndex={0}>
      {elementOf(parsed, shown, "0")}
    </section>
  );
}

function documentOf(svg: string): Element | null {
  // The colours of the app are in its own sheet, and the policy of the page takes no other.
  const bare = svg.replace(/<style>[\s\S]*?<\/style>/, "");
  const found = new DOMParser().parseFromString(bare, "image/svg+xml").documentElement;
  return found.localName === "svg" ? found : null;
}

type Shown = {
  /** Null: as they are drawn. */
  states: Map<string, string> | null;
  name: (title: string) => string;
  target: (title: string) => string;
  step: string;
  open: (node: string) => void;
};

const ELEMENTS = new Set(["svg", "g", "path", "rect", "circle", "text", "title", "desc", "tspan"]);
const ATTRIBUTES = ["viewBox", "width", "height", "x", "y", "cx", "cy", "r", "rx", "d", "transform"];
const STATES = new Set(["ready", "running", "done", "failed", "waiting", "asking", "skipped", "unknown"]);

/** Only elements and attributes that draw: no style, no script, no address. */
function elementOf(element: Element, shown: Shown, key: string): ReactNode {
  if (!ELEMENTS.has(element.localName)) return null;
  const kind = (element.getAttribute("class") ?? "").split(" ").filter(Boolean);
  const given: Record<string, unknown> = { key };
  for (const name of ATTRIBUTES) if (element.hasAttribute(name)) given[name] = element.getAttribute(name);
  if (kind[0] === "legend" && shown.states !== null) return null;
  if (kind[0] === "edge" && shown.states !== null && !shown.states.has(shown.target(titleOf(element)))) kind.splice(0, kind.length, ...kind.filter((each) => each !== "taken"));
  let state: string | undefined;
  let node = "";
  if (element.localName === "svg") Object.assign(given, { role: "group", "aria-label": element.getAttribute("aria-label") ?? t("graph") });
  if (kind[0] === "node") {
    node = shown.name(titleOf(element));
    state = shown.states === null ? kind.find((each) => STATES.has(each)) : shown.states.get(node);
    if (shown.states !== null) kind.splice(0, kind.length, ...kind.filter((each) => !STATES.has(each)), ...(state ? [state] : []));
    if (node) Object.assign(given, buttonOf(node, shown));
    if (node && node === shown.step) kind.push("shown");
  }
  if (kind.length > 0) given["className"] = kind.join(" ");
  return createElement(element.localName, given, ...childrenOf(element, { shown, key, state, node, isNode: kind[0] === "node" }));
}

type Drawn = { shown: Shown; key: string; state: string | undefined; node: string; isNode: boolean };

const TEXTS = new Set(["text", "title", "desc", "tspan"]);

function childrenOf(element: Element, drawn: Drawn): ReactNode[] {
  return Array.from(element.childNodes, (child, place) => {
    if (!(child instanceof Element)) return TEXTS.has(element.localName) ? child.textContent : null;
    const key = `${drawn.key}.${place}`;
    if (drawn.node && child.localName === "title") return <title key={key}>{t("openNode", { node: drawn.node, state: stateWord(drawn.state) })}</title>;
    // At an earlier record the sign and the word of the drawing are of another time.
    const isOld = drawn.isNode && drawn.shown.states !== null;
    const what = child.getAttribute("class");
    if (isOld && what === "sign") return null;
    if (isOld && what === "note") return noteOf(child, drawn.state, key);
    return elementOf(child, drawn.shown, key);
  });
}

function stateWord(state: string | undefined): string {
  return state ? visitWord(state).word : t("later");
}

function noteOf(note: Element, state: string | undefined, key: string): ReactNode {
  const at = { x: note.getAttribute("x") ?? "0", y: note.getAttribute("y") ?? "0" };
  return (
    <text key={key} className="note" {...at}>
      {stateWord(state).toLowerCase()}
    </text>
  );
}

function titleOf(element: Element): string {
  return [...element.children].find((each) => each.localName === "title")?.textContent ?? "";
}

function buttonOf(node: string, shown: Shown): Record<string, unknown> {
  const open = () => shown.open(node);
  const pressed = (event: KeyboardEvent) => {
    if (event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    open();
  };
  return { role: "button", tabIndex: 0, onClick: open, onKeyDown: pressed };
}
