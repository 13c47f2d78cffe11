/** The root of all routes. Each screen adds its own, in its own module. */
import { createRootRoute } from "@tanstack/react-router";
import { NotFound } from "@/components/Problem";
import { Shell } from "./Shell";

export const rootRoute = createRootRoute({ component: Shell, notFoundComponent: NotFound });
