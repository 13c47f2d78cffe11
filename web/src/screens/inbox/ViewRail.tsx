import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import { useKeys } from "@/app/useKeys";
import { useSession } from "@/app/useSession";
import { type View, listViews } from "@/services/holds";
import { DropView, SaveView } from "./SaveView";
import { t } from "./text";
import { countQuery } from "./useHolds";
import { VIEWS, type ViewEntry } from "./views";

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
  return (
    <nav className="rail" aria-label={t("views")}>
      <ul>
        {shown.map((each) => (
          <li key={each.view}>
            <Link to="/inbox/$view" params={{ view: each.view }} className="view" aria-current={current === each.view ? "page" : undefined}>
              <span>{t(each.label)}</span>
              {each.counted ? <Count entry={each} /> : null}
            </Link>
          </li>
        ))}
      </ul>
      {saved.data && saved.data.length > 0 ? (
        <>
          <h2 className="group-title">{t("saved")}</h2>
          <ul>
            {saved.data.map((each) => (
              <li key={each.id} className="saved-view">
                <Link to="/inbox/$view" params={{ view: each.id }} className="view" aria-current={current === each.id ? "page" : undefined}>
                  {each.title}
                </Link>
                {each.owner === person ? <DropView saved={each} isCurrent={current === each.id} /> : null}
              </li>
            ))}
          </ul>
        </>
      ) : null}
      {rights.has("holds:write") ? <SaveView view={view} q={q} /> : null}
    </nav>
  );
}

function Count({ entry }: { entry: ViewEntry }) {
  const { data } = useQuery(countQuery(entry.view));
  return data ? <span className="view-count">{data}</span> : null;
}
