/** What holds for the whole page: the server is away, or has another release. */
import { useQueryClient } from "@tanstack/react-query";
import { useEffect } from "react";
import { shell } from "@/locales/en/shell";
import { textOf } from "@/locales/text";
import { useGaps, useLiveState } from "@/live/useLive";
import { newRelease } from "./flag";
import { sessionQuery } from "./useSession";

const t = textOf(shell);

export function OfflineBar() {
  return useLiveState() === "offline" ? (
    <p className="offline-bar" role="alert">
      {t("offlineBar")}
    </p>
  ) : null;
}

/** Asked again after each lost connection: a server that was restarted may have another release. */
export function ReleaseBar() {
  const gaps = useGaps();
  const queries = useQueryClient();
  useEffect(() => {
    if (gaps > 0) void queries.invalidateQueries({ queryKey: sessionQuery.queryKey });
  }, [gaps, queries]);
  return newRelease.use() ? (
    <p className="offline-bar" role="alert">
      {t("newVersion")}{" "}
      <button type="button" className="button" onClick={() => window.location.reload()}>
        {t("reload")}
      </button>
    </p>
  ) : null;
}
