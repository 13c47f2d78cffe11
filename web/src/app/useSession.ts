import { queryOptions, useSuspenseQuery } from "@tanstack/react-query";
import { type Right, type Session, getSession } from "@/services/session";

export const sessionQuery = queryOptions({ queryKey: ["session"], queryFn: getSession, staleTime: 300_000 });

export function useSession(): Session {
  return useSuspenseQuery(sessionQuery).data;
}

export function useRight(right: Right): boolean {
  return useSession().rights.has(right);
}
