import { createRoute, createRouter } from "@tanstack/react-router";
import { BrokenPart } from "@/components/Problem";
import { editorRoutes } from "@/screens/editor/routes";
import { flowsRoutes } from "@/screens/flows/routes";
import { inboxRoutes } from "@/screens/inbox/routes";
import { operationsRoutes } from "@/screens/operations/routes";
import { runsRoutes } from "@/screens/runs/routes";
import { settingsRoutes } from "@/screens/settings/routes";
import { rootPath } from "@/services/client";
import { Home } from "./Home";
import { rootRoute } from "./root";

const home = createRoute({ getParentRoute: () => rootRoute, path: "/", component: Home });

export const router = createRouter({
  routeTree: rootRoute.addChildren([
    home,
    ...inboxRoutes,
    ...runsRoutes,
    ...flowsRoutes,
    ...editorRoutes,
    ...operationsRoutes,
    ...settingsRoutes,
  ]),
  basepath: rootPath || "/",
  defaultErrorComponent: BrokenPart,
  defaultPreload: "intent",
  scrollRestoration: false,
});

declare module "@tanstack/react-router" {
  interface Register {
    router: typeof router;
  }
}
