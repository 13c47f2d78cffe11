import { createRoute, lazyRouteComponent } from "@tanstack/react-router";
import { rootRoute } from "@/app/root";

export type EditorSearch = { view?: "text"; run?: string };

export const editorRoutes = [
  createRoute({
    getParentRoute: () => rootRoute,
    path: "/editor/$document",
    validateSearch: (given: Record<string, unknown>): EditorSearch => ({
      ...(given["view"] === "text" ? { view: "text" as const } : {}),
      ...(typeof given["run"] === "string" && given["run"] !== "" ? { run: given["run"] } : {}),
    }),
    component: lazyRouteComponent(() => import("./Screen"), "Screen"),
  }),
] as const;
