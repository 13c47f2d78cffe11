/** A change on the server that is sent once, however often its button is pressed before the answer: a button is disabled only when the page is drawn again. */
import { type UseMutationOptions, useMutation } from "@tanstack/react-query";
import { useRef } from "react";
import { useOffline } from "@/live/useLive";

export const DRAWN = 50;

export function useAction<Data, Given = void>({ mutationFn, ...options }: { mutationFn: (given: Given) => Promise<Data> } & Omit<UseMutationOptions<Data, Error, Given>, "mutationFn">) {
  const isSent = useRef(false);
  const isOffline = useOffline();
  const found = useMutation<Data, Error, Given>({
    ...options,
    mutationFn: async (given) => {
      try {
        return await mutationFn(given);
      } finally {
        // A key may come between the answer and the page that shows it, where the text that was sent still stands.
        setTimeout(() => {
          isSent.current = false;
        }, DRAWN);
      }
    },
  });
  const mutate: typeof found.mutate = (...given) => {
    if (isSent.current) return;
    isSent.current = true;
    found.mutate(...given);
  };
  // Offline nothing is sent: its button is off, as while it is under way.
  return { ...found, mutate, isOff: found.isPending || isOffline };
}
