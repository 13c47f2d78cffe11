/** Everything that the palette can find, by the rights of the person. */
import { useQuery } from "@tanstack/react-query";
import { useRouter } from "@tanstack/react-router";
import { shell } from "@/locales/en/shell";
import { textOf } from "@/locales/text";
import { type Finding, isIdStart, matching } from "@/models/palette";
import { shownPanels } from "@/screens/operations/panels";
import { operations } from "@/locales/en/operations";
import { findHolds, findRuns } from "@/services/find";
import { listFlows } from "@/services/flows";
import { holdWord, runWord, word } from "@/words";
import { AREAS } from "./areas";
import { PALETTE_KEYS, useBoundKeys } from "./useKeys";
import { useSession } from "./useSession";

const t = textOf(shell);
const panelText = textOf(operations);

export type Choice = Finding & { run: () => void };

/** `asked`: what the server is asked for, a moment after it was typed. */
export function useFindings(typed: string, asked: string): { found: Choice[]; isSearching: boolean; error: unknown; retry: () => void } {
  const { rights } = useSession();
  const { navigate } = useRouter();
  const keys = useBoundKeys();
  const start = isIdStart(asked) ? asked.toLowerCase() : "";
  const flows = useQuery({ queryKey: ["flows", "list"], queryFn: listFlows, enabled: rights.has("flows:read") });
  const runs = useQuery({ queryKey: ["find", "runs", start], queryFn: () => findRuns(start), enabled: start !== "" && rights.has("runs:read") });
  const holds = useQuery({ queryKey: ["find", "holds", start], queryFn: () => findHolds(start), enabled: start !== "" && rights.has("holds:read") });

  const areas = AREAS.filter((area) => area.rights.some((right) => rights.has(right)));
  const areaKeys = new Set(AREAS.map((area) => area.keys));
  const all: Choice[] = [
    ...(typed === asked ? (runs.data ?? []) : []).map((run) => choice("run", run.id, `${run.flow} ${run.id}`, runWord(run.status).word, () => navigate({ to: "/runs/$run", params: { run: run.id } }))),
    ...(typed === asked ? (holds.data ?? []) : []).map((hold) => choice("hold", hold.id, hold.title, holdWord(hold.status).word, () => navigate({ to: "/inbox/$view/$hold", params: { view: "all", hold: hold.id } }))),
    ...areas.map((area) => choice("page", area.to, t(area.label), "", () => navigate({ to: area.to }), area.keys)),
    ...shownPanels(rights).map((name) => choice("page", name, panelText(name), t("operations"), () => navigate({ to: "/operations/$panel", params: { panel: name } }))),
    choice("page", "settings", t("settings"), "", () => navigate({ to: "/settings" })),
    ...(flows.data ?? []).map((flow) => choice("flow", flow.name, flow.name, "", () => navigate({ to: "/flows/$name", params: { name: flow.name } }))),
    ...(rights.has("runs:write") ? (flows.data ?? []) : []).map((flow) =>
      choice("action", `start ${flow.name}`, t("startNamed", { action: word("startRun"), flow: flow.name }), "", () => navigate({ to: "/flows/$name/start", params: { name: flow.name } })),
    ),
    ...keys.flatMap((each) => (each.run && !areaKeys.has(each.keys) && each.keys !== PALETTE_KEYS ? [choice("action", `key ${each.keys}`, each.label, each.group, each.run, each.keys)] : [])),
  ];
  const runOf = new Map(all.map((each) => [`${each.kind} ${each.id}`, each.run]));
  const found = matching(all, typed).map((each) => ({ ...each, run: runOf.get(`${each.kind} ${each.id}`)! }));
  const failed = [flows, runs, holds].filter((each) => each.isError);
  return {
    found,
    isSearching: isIdStart(typed) && (typed !== asked || runs.isFetching || holds.isFetching),
    error: failed[0]?.error ?? null,
    retry: () => failed.forEach((each) => void each.refetch()),
  };
}

function choice(kind: Finding["kind"], id: string, label: string, hint: string, run: () => unknown, keys = ""): Choice {
  return { kind, id, label, hint, keys, run: () => void run() };
}
