import { createRoute, lazyRouteComponent } from "@tanstack/react-router";
import { rootRoute } from "@/app/root";

/** `row`: the row that is open. `state`: of notifications. `span`: of metrics. The others: filters of the audit. */
const NAMES = ["row", "q", "actor", "action", "since", "until", "state", "span"] as const;
export type OperationsSearch = { [Name in (typeof NAMES)[number]]?: string };

const component = lazyRouteComponent(() => import("./Screen"), "Screen");

function validateSearch(given: Record<string, unknown>): OperationsSearch {
  const kept = NAMES.filter((name) => given[name] !== undefined && given[name] !== "");
  return Object.fromEntries(kept.map((name) => [name, String(given[name])]));
}

export const operationsRoutes = [
  createRoute({ getParentRoute: () => rootRoute, path: "/operations", validateSearch, component }),
  createRoute({ getParentRoute: () => rootRoute, path: "/operations/$panel", validateSearch, component }),
] as const;
