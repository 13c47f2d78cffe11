/** Tells the others that this person looks at a hold, and who they are. */
import { useQuery } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { serverNow } from "@/components/useNow";
import { beat, leave } from "@/services/holds";

const EVERY = 15_000;

/** Who was heard of lately: somebody whose page was closed is gone when their time is over, without being asked for. */
export function usePresence(hold: string): string[] {
  const { data } = useQuery({ queryKey: ["presence", hold], queryFn: () => beat(hold, false), refetchInterval: EVERY, gcTime: 0 });
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
