import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import { useRef, useState } from "react";
import { useKeys } from "@/app/useKeys";
import { useSession } from "@/app/useSession";
import { Problem } from "@/components/Problem";
import { Skeleton } from "@/components/Skeleton";
import { useKeepFocus } from "@/components/useKeepFocus";
import { type View, listViews } from "@/services/holds";
import { DropView, SaveView } from "./SaveView";
import { t } from "./text";
import { isCountable, waitingQuery } from "./useHolds";
import { VIEWS } from "./views";

export function ViewRail({ current, view, q }: { current: string; view: View; q: string }) {
  const { rights, person } = useSession();
  const navigate = useNavigate();
  const saved = useQuery({ queryKey: ["views"], queryFn: listViews });
  const shown = VIEWS.filter((each) => each.right === undefined || rights.has(each.right));
  useKeys(
    shown.filter((each) => each.keys).map((each) => ({
      keys: each.keys ?? "",
      group: t("title"),
      label: t(each.label),
      run: () => void navigate({ to: "/inbox/$view", params: { view: each.view } }),
    })),
  );
  const [isOpen, setOpen] = useState(false);
  const rail = useRef<HTMLElement>(null);
  // A form that was closed, a view that was removed.
  const keep = useKeepFocus(() => rail.current?.querySelector<HTMLElement>(".save-view"));
  const name = shown.find((each) => each.view === current);
  const title = name ? t(name.label) : (saved.data?.find((each) => each.id === current)?.title ?? t("all"));
  return (
    <nav ref={rail} className={`rail ${isOpen ? "open" : ""}`} aria-label={t("views")} data-part="views" {...keep}>
      <button type="button" className="button rail-menu" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
        {t("view", { title })} <span aria-hidden="true">{"▾"}</span>
      </button>
      {/* oxlint-disable-next-line jsx-a11y/click-events-have-key-events, jsx-a11y/no-static-element-interactions -- a link in it was followed */}
      <div className="rail-views" onClick={(event) => (event.target as HTMLElement).closest("a") && setOpen(false)}>
        <ul>
          {shown.map((each) => (
            <li key={each.view}>
              <Link to="/inbox/$view" params={{ view: each.view }} className="view" aria-current={current === each.view ? "page" : undefined}>
                <span>{t(each.label)}</span>
                {each.counted ? <Count view={each.view} q="" /> : null}
              </Link>
            </li>
          ))}
        </ul>
        {saved.isPending ? <Skeleton rows={1} /> : null}
        {saved.isError ? <Problem error={saved.error} onRetry={() => void saved.refetch()} /> : null}
        {saved.data && saved.data.length > 0 ? (
          <>
            <h2 className="group-title">{t("saved")}</h2>
            <ul>
              {saved.data.map((each) => (
                <li key={each.id} className="saved-view">
                  <Link to="/inbox/$view" params={{ view: each.id }} className="view" aria-current={current === each.id ? "page" : undefined}>
                    <span>{each.title}</span>
                    <Count view={each.view} q={each.q} />
                  </Link>
                  {each.owner === person ? <DropView saved={each} isCurrent={current === each.id} /> : null}
                </li>
              ))}
            </ul>
          </>
        ) : null}
        {rights.has("holds:write") ? <SaveView view={view} q={q} /> : null}
      </div>
    </nav>
  );
}

function Count({ view, q }: { view: View; q: string }) {
  const { data } = useQuery({ ...waitingQuery(view, q), enabled: isCountable(q) });
  return data ? <span className="view-count">{t("number", { count: data })}</span> : null;
}
