import { createRoute, lazyRouteComponent } from "@tanstack/react-router";
import { rootRoute } from "@/app/root";

/** `row`: the row that is open. `actor`, `action`: filters of the audit. `state`: of notifications. `span`: of metrics. */
export type OperationsSearch = { row?: string; actor?: string; action?: string; state?: string; span?: string };

const NAMES = ["row", "actor", "action", "state", "span"] as const;
const component = lazyRouteComponent(() => import("./Screen"), "Screen");

function validateSearch(given: Record<string, unknown>): OperationsSearch {
  const kept = NAMES.filter((name) => given[name] !== undefined && given[name] !== "");
  return Object.fromEntries(kept.map((name) => [name, String(given[name])]));
}

export const operationsRoutes = [
  createRoute({ getParentRoute: () => rootRoute, path: "/operations", validateSearch, component }),
  createRoute({ getParentRoute: () => rootRoute, path: "/operations/$panel", validateSearch, component }),
] as const;
