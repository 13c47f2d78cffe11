/** The inbox of the view, own or saved, that the address names. */
import { useQuery } from "@tanstack/react-query";
import { useParams } from "@tanstack/react-router";
import { useRight } from "@/app/useSession";
import { Forbidden } from "@/components/Problem";
import { listViews } from "@/services/holds";
import { Inbox } from "./Inbox";
import "./inbox.css";
import { t } from "./text";
import { entryOf, viewOf } from "./views";

export function Screen() {
  const { view: name = "mine", hold = "" } = useParams({ strict: false });
  const mayRead = useRight("holds:read");
  const saved = useQuery({ queryKey: ["views"], queryFn: listViews, enabled: mayRead });
  if (!mayRead) return <Page><Forbidden right="holds:read" /></Page>;
  const known = viewOf(name);
  if (known !== null) return <Inbox name={name} title={t(entryOf(known).label)} view={known} savedQuery="" hold={hold} />;
  const own = saved.data?.find((each) => each.id === name);
  if (own) return <Inbox name={name} title={own.title} view={own.view} savedQuery={own.q} hold={hold} />;
  if (saved.isPending) return <Page><span /></Page>;
  // Older messages link to /inbox/HOLD.
  return <Inbox name="all" title={t("all")} view="all" savedQuery="" hold={hold || name} />;
}

function Page({ children }: { children: React.ReactNode }) {
  return (
    <main id="main" tabIndex={-1} className="page">
      {children}
    </main>
  );
}
