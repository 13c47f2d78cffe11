/** The server's checker and layout, asked a moment after the last change. */
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import type { Box, Checked, Format } from "@/services/documents";
import { arrangeText, checkText } from "@/services/documents";

const PAUSE = 250;
const NOWHERE: Record<string, Box> = {};

export function useCheck(text: string, format: Format, mayCheck: boolean) {
  const settled = useSettled(text);
  const check = useQuery<Checked>({ queryKey: ["documents", "check", format, settled], queryFn: () => checkText(settled, format), enabled: mayCheck, placeholderData: keepPreviousData, gcTime: 60_000, staleTime: 60_000 });
  return { check, isSettled: settled === text && !check.isPlaceholderData };
}

/** Only for a document with nodes that have no place. */
export function useBoxes(text: string, format: Format, isNeeded: boolean): { boxes: Record<string, Box>; isReady: boolean } {
  const settled = useSettled(text);
  const boxes = useQuery({ queryKey: ["documents", "boxes", format, settled], queryFn: () => arrangeText(settled, format), enabled: isNeeded, placeholderData: keepPreviousData, retry: false });
  return { boxes: boxes.data ?? NOWHERE, isReady: !isNeeded || !boxes.isPending };
}

function useSettled(text: string): string {
  const [settled, setSettled] = useState(text);
  useEffect(() => {
    const timer = window.setTimeout(() => setSettled(text), PAUSE);
    return () => window.clearTimeout(timer);
  }, [text]);
  return settled;
}
