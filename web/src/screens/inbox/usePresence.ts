/** Tells the others that this person looks at a hold, and who they are. */
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { serverNow } from "@/components/useNow";
import { useHoldChanges, useLiveState } from "@/live/useLive";
import { type Viewer, beat, leave, listViewers } from "@/services/holds";

/** Being there is written; who else is there is only read, so it is asked for more often. */
const TELL = 15_000;
const ASK = 3_000;

function askerOf(hold: string): () => Promise<Viewer[]> {
  let toldAt = Number.NEGATIVE_INFINITY;
  return async () => {
    const now = Date.now();
    if (now - toldAt < TELL) return listViewers(hold);
    const found = await beat(hold, false);
    toldAt = now;
    return found;
  };
}

/** Who was heard of lately: somebody whose page was closed is gone when their time is over, without being asked for. */
export function usePresence(hold: string): string[] {
  const client = useQueryClient();
  const [asked] = useState(() => askerOf(hold));
  // A server that starts, or is away, is not asked that often.
  const every = useLiveState() === "live" ? ASK : TELL;
  const { data } = useQuery({ queryKey: ["presence", hold], queryFn: asked, refetchInterval: every, gcTime: 0 });
  // Someone who opens it for the first time is in its history at once.
  useHoldChanges((change) => {
    if (change.hold === hold) void client.invalidateQueries({ queryKey: ["presence", hold] });
  });
  const [now, setNow] = useState(serverNow);
  const next = Math.min(...(data ?? []).map((each) => each.until).filter((until) => until > now));
  useEffect(() => {
    if (!Number.isFinite(next)) return undefined;
    const timer = setTimeout(() => setNow(serverNow()), Math.max(0, next - serverNow()) + 50);
    return () => clearTimeout(timer);
  }, [next]);
  useEffect(() => () => void leave(hold).catch(() => {}), [hold]);
  return (data ?? []).filter((each) => each.until > now).map((each) => each.person);
}
