import { queryOptions, useSuspenseQuery } from "@tanstack/react-query";
import { setServerTime } from "@/components/useNow";
import { type Right, type Session, getSession } from "@/services/session";

export const sessionQuery = queryOptions({ queryKey: ["session"], queryFn: readSession, staleTime: 300_000 });

/** Countdowns follow the server's clock, whatever the clock of this machine says. */
async function readSession(): Promise<Session> {
  const session = await getSession();
  const now = Date.parse(session.now);
  if (!Number.isNaN(now)) setServerTime(now);
  return session;
}

export function useSession(): Session {
  return useSuspenseQuery(sessionQuery).data;
}

export function useRight(right: Right): boolean {
  return useSession().rights.has(right);
}
