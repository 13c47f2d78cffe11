/** `/` leads to the inbox; without the right to see holds, to the runs. */
import { Navigate } from "@tanstack/react-router";
import { useRight } from "./useSession";

export function Home() {
  const mayRead = useRight("holds:read");
  return mayRead ? <Navigate to="/inbox/$view" params={{ view: "mine" }} replace /> : <Navigate to="/runs" replace />;
}
