/** What was read from the server, kept and renewed. */
import { MutationCache, QueryCache, QueryClient } from "@tanstack/react-query";
import { failureOf, noteUnexpected } from "@/services/client";
import { otherPerson, signedOut } from "./flag";

function noteFailure(error: unknown): void {
  noteUnexpected(error);
  const { kind, code } = failureOf(error);
  if (code === "session_changed") otherPerson.raise();
  else if (kind === "signed-out") signedOut.raise();
}

/** For what is read anew with each record of a run: what is not shown any more is soon dropped. */
export const PASSING = 10_000;

export const queryClient = new QueryClient({
  queryCache: new QueryCache({ onError: noteFailure }),
  mutationCache: new MutationCache({ onError: noteFailure }),
  defaultOptions: {
    // The client itself repeats what can be repeated. Live events say when something has changed.
    queries: { retry: false, staleTime: 10_000, refetchOnWindowFocus: true },
    // Nothing is queued: what cannot be sent now has failed.
    mutations: { retry: false, networkMode: "always" },
  },
});
