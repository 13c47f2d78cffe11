import { createRoute, lazyRouteComponent, redirect } from "@tanstack/react-router";
import { rootRoute } from "@/app/root";

export type InboxSearch = { q?: string; tab?: "activity" | "flow" | "data" };

export const TABS = ["activity", "flow", "data"] as const;
const component = lazyRouteComponent(() => import("./Screen"), "Screen");

function validateSearch(given: Record<string, unknown>): InboxSearch {
  const tab = TABS.find((each) => each === given["tab"]);
  return { ...(typeof given["q"] === "string" && given["q"] ? { q: given["q"] } : {}), ...(tab ? { tab } : {}) };
}

export const inboxRoutes = [
  createRoute({
    getParentRoute: () => rootRoute,
    path: "/inbox",
    beforeLoad: () => {
      throw redirect({ to: "/inbox/$view", params: { view: "mine" }, replace: true });
    },
  }),
  createRoute({ getParentRoute: () => rootRoute, path: "/inbox/$view", validateSearch, component }),
  createRoute({ getParentRoute: () => rootRoute, path: "/inbox/$view/$hold", validateSearch, component }),
  createRoute({
    getParentRoute: () => rootRoute,
    path: "/holds",
    beforeLoad: () => {
      throw redirect({ to: "/inbox/$view", params: { view: "all" }, replace: true });
    },
  }),
  // Mail and chat link here.
  createRoute({
    getParentRoute: () => rootRoute,
    path: "/holds/$hold",
    beforeLoad: ({ params }) => {
      throw redirect({ to: "/inbox/$view/$hold", params: { view: "all", hold: params.hold }, replace: true });
    },
  }),
] as const;
