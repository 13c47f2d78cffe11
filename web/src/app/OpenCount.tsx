/** How many holds wait for this person, in the header and in the title of the tab. */
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect } from "react";
import { countInTitle } from "@/components/useTitle";
import { shell } from "@/locales/en/shell";
import { textOf } from "@/locales/text";
import { useHoldChanges } from "@/live/useLive";
import { useRest } from "@/live/useRest";
import { countOpen } from "@/services/holds";

const t = textOf(shell);

export function OpenCount() {
  const { data } = useQuery({ queryKey: ["holds", "count", "mine"], queryFn: () => countOpen("mine") });
  const count = data ?? 0;
  const queries = useQueryClient();
  // On every page: the count follows the holds, and the connection that it opens shows whether the page is live.
  useHoldChanges(useRest(() => queries.invalidateQueries({ queryKey: ["holds", "count"] })));
  useEffect(() => countInTitle(count), [count]);
  if (count === 0) return null;
  return (
    <span className="count">
      <span aria-hidden="true">{count}</span>
      <span className="away">{t("openCount", { count })}</span>
    </span>
  );
}
