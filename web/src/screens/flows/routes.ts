import { createRoute, lazyRouteComponent } from "@tanstack/react-router";
import { rootRoute } from "@/app/root";

const component = lazyRouteComponent(() => import("./Screen"), "Screen");

export const flowsRoutes = [
  createRoute({ getParentRoute: () => rootRoute, path: "/flows", component }),
  createRoute({ getParentRoute: () => rootRoute, path: "/flows/$name", component }),
  createRoute({ getParentRoute: () => rootRoute, path: "/flows/$name/start", component }),
  createRoute({ getParentRoute: () => rootRoute, path: "/editor/$document", component }),
] as const;
