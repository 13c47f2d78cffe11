/** Tells the server that this person has opened the question: the first view is in its history and in the metrics. */
import { useQueryClient } from "@tanstack/react-query";
import { useEffect } from "react";
import { useRight } from "@/app/useSession";
import { useOffline } from "@/live/useLive";
import { markSeen } from "@/services/holds";

/** The server counts the first time only; it is reported once for as long as the page is open. */
const reported = new Set<string>();

export function useSeen(hold: string, isOpen: boolean): void {
  const mayWrite = useRight("holds:write");
  const isOffline = useOffline();
  const client = useQueryClient();
  useEffect(() => {
    if (!isOpen || !mayWrite || isOffline || reported.has(hold)) return;
    reported.add(hold);
    markSeen(hold).then(
      () => client.invalidateQueries({ queryKey: ["history", hold] }),
      () => reported.delete(hold),
    );
  }, [hold, isOpen, mayWrite, isOffline, client]);
}
