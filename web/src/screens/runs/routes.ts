import { createRoute, lazyRouteComponent } from "@tanstack/react-router";
import { rootRoute } from "@/app/root";

export const RUN_TABS = ["graph", "timeline", "events", "state", "compare", "postmortem"] as const;
export type RunTab = (typeof RUN_TABS)[number];
export type RunsSearch = { q?: string };
export type RunSearch = { tab?: RunTab; at?: number; to?: number | string; step?: number };

function numberIn(given: unknown): number | undefined {
  const found = typeof given === "number" ? given : typeof given === "string" && given !== "" ? Number(given) : Number.NaN;
  return Number.isSafeInteger(found) && found >= 0 ? found : undefined;
}

/** `12`, `RUN` or `RUN@12`. */
function referenceIn(given: unknown): number | string | undefined {
  if (typeof given !== "string") return numberIn(given);
  return numberIn(given) ?? (/^[\w-]{1,64}(@\d{1,10})?$/.test(given) ? given : undefined);
}

export const runsRoutes = [
  createRoute({
    getParentRoute: () => rootRoute,
    path: "/runs",
    validateSearch: (given: Record<string, unknown>): RunsSearch =>
      typeof given["q"] === "string" && given["q"] ? { q: given["q"] } : {},
    component: lazyRouteComponent(() => import("./Screen"), "Screen"),
  }),
  createRoute({
    getParentRoute: () => rootRoute,
    path: "/runs/$run",
    validateSearch: (given: Record<string, unknown>): RunSearch => {
      const found: RunSearch = {
        tab: RUN_TABS.find((each) => each === given["tab"]),
        at: numberIn(given["at"]),
        to: referenceIn(given["to"]),
        step: numberIn(given["step"]),
      };
      return Object.fromEntries(Object.entries(found).filter(([, value]) => value !== undefined));
    },
    component: lazyRouteComponent(() => import("./RunScreen"), "RunScreen"),
  }),
] as const;
