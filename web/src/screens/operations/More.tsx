import { t } from "./text";

type Pages = { hasNextPage: boolean; isFetchingNextPage: boolean; fetchNextPage: () => unknown };

export function More({ query }: { query: Pages }) {
  if (!query.hasNextPage) return null;
  return (
    <button type="button" className="button" disabled={query.isFetchingNextPage} onClick={() => void query.fetchNextPage()}>
      {t("more")}
    </button>
  );
}
