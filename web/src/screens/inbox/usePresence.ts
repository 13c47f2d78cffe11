/** Tells the others that this person looks at a hold, and who they are. */
import { useQuery } from "@tanstack/react-query";
import { useEffect } from "react";
import { beat, leave } from "@/services/holds";

const EVERY = 15_000;

export function usePresence(hold: string): string[] {
  const { data } = useQuery({ queryKey: ["presence", hold], queryFn: () => beat(hold, false), refetchInterval: EVERY, gcTime: 0 });
  useEffect(() => () => void leave(hold).catch(() => {}), [hold]);
  return data ?? [];
}
