import { failureOf } from "@/services/client";

type Reading = { isError: boolean; data: unknown; error: unknown };

/** Whether a query has nothing to show. What was read stays on the page while the server is away or fails, with what was
 * typed into it; it goes if it is no more, or may not be seen any more. */
export function isLost<Q extends Reading>(query: Q): query is Extract<Q, { isError: true; data: undefined }> {
  if (!query.isError) return false;
  return query.data === undefined || ["missing", "forbidden"].includes(failureOf(query.error).kind);
}
