import { queryOptions, useSuspenseQuery } from "@tanstack/react-query";
import { setServerTime } from "@/components/useNow";
import { release } from "@/services/client";
import { type Right, type Session, getSession } from "@/services/session";
import { newRelease } from "./flag";

export const sessionQuery = queryOptions({ queryKey: ["session"], queryFn: readSession, staleTime: 300_000, refetchOnWindowFocus: "always" });

/** Countdowns follow the server's clock, whatever the clock of this machine says. */
async function readSession(): Promise<Session> {
  const session = await getSession();
  const now = Date.parse(session.now);
  if (!Number.isNaN(now)) setServerTime(now);
  if (session.webRelease !== "" && release !== "" && session.webRelease !== release) newRelease.raise();
  return session;
}

export function useSession(): Session {
  return useSuspenseQuery(sessionQuery).data;
}

export function useRight(right: Right): boolean {
  return useSession().rights.has(right);
}
