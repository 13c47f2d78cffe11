/** Versions and names of flows. */
import { shortVersion } from "@/models/names";
import type { Flow, Version } from "@/services/flows";

export function currentOf(flow: Flow): Version | undefined {
  return flow.versions.find((each) => each.isCurrent) ?? flow.versions[0];
}

/** By its id or its label. */
export function versionIn(flow: Flow, wanted: string | undefined): Version | undefined {
  return flow.versions.find((each) => each.id === wanted || (each.label !== "" && each.label === wanted)) ?? currentOf(flow);
}

/** Its label, else the start of its fingerprint. */
export function versionName(version: Pick<Version, "id" | "label">): string {
  return version.label || shortVersion(version.id);
}

/** Every word is in the name or in the description. */
export function matches(flow: Flow, q: string): boolean {
  const text = `${flow.name} ${flow.description}`.toLocaleLowerCase();
  return q.toLocaleLowerCase().split(/\s+/).every((each) => text.includes(each));
}
