import { createRoute, lazyRouteComponent } from "@tanstack/react-router";
import { rootRoute } from "@/app/root";

const component = lazyRouteComponent(() => import("./Screen"), "Screen");

export const operationsRoutes = [
  createRoute({ getParentRoute: () => rootRoute, path: "/operations", component }),
  createRoute({ getParentRoute: () => rootRoute, path: "/operations/$panel", component }),
] as const;
