import { createRoute, lazyRouteComponent } from "@tanstack/react-router";
import { rootRoute } from "@/app/root";

export const FLOW_TABS = ["graph", "versions", "runs", "failures"] as const;
export type FlowTab = (typeof FLOW_TABS)[number];
export type FlowsSearch = { q?: string };
export type FlowSearch = { tab?: FlowTab; version?: string };
export type StartSearch = { from?: string; version?: string; view?: "json" };

function textsIn<Name extends string>(given: Record<string, unknown>, ...names: Name[]): { [each in Name]?: string } {
  const found = names.filter((name) => typeof given[name] === "string" && given[name] !== "");
  return Object.fromEntries(found.map((name) => [name, given[name]])) as { [each in Name]?: string };
}

export const flowsRoutes = [
  createRoute({
    getParentRoute: () => rootRoute,
    path: "/flows",
    validateSearch: (given: Record<string, unknown>): FlowsSearch => textsIn(given, "q"),
    component: lazyRouteComponent(() => import("./Screen"), "Screen"),
  }),
  createRoute({
    getParentRoute: () => rootRoute,
    path: "/flows/$name",
    validateSearch: (given: Record<string, unknown>): FlowSearch => {
      const tab = FLOW_TABS.find((each) => each === given["tab"]);
      return { ...(tab ? { tab } : {}), ...textsIn(given, "version") };
    },
    component: lazyRouteComponent(() => import("./FlowScreen"), "FlowScreen"),
  }),
  createRoute({
    getParentRoute: () => rootRoute,
    path: "/flows/$name/start",
    validateSearch: (given: Record<string, unknown>): StartSearch => ({
      ...textsIn(given, "from", "version"),
      ...(given["view"] === "json" ? { view: "json" as const } : {}),
    }),
    component: lazyRouteComponent(() => import("./StartScreen"), "StartScreen"),
  }),
] as const;
