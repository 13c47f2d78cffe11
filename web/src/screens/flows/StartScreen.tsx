/** Start a run: the input as fields or as JSON, and how it is to run. */
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { Link, useParams, useSearch } from "@tanstack/react-router";
import { useRight } from "@/app/useSession";
import { isLost } from "@/components/isLost";
import { Forbidden, Problem } from "@/components/Problem";
import { Skeleton } from "@/components/Skeleton";
import { useTitle } from "@/components/useTitle";
import { getFlow, getInputSchema, inputOf } from "@/services/flows";
import "./flows.css";
import { StartForm } from "./StartForm";
import { t } from "./text";
import { versionIn } from "./versions";

const NOTHING = {};

export function StartScreen() {
  const { name = "" } = useParams({ strict: false });
  const { from = "" } = useSearch({ strict: false });
  const mayRead = useRight("flows:read");
  useTitle([t("start", { flow: name })]);
  const mayStart = useRight("runs:write");
  const missing = mayRead ? "runs:write" : "flows:read";
  return (
    <main id="main" tabIndex={-1} className="page">
      <header className="flow-head">
        <p className="muted small">
          <Link to="/flows">{t("title")}</Link> {"›"}{" "}
          <Link to="/flows/$name" params={{ name }}>
            {name}
          </Link>
        </p>
        <h1>{t("start", { flow: name })}</h1>
        {from ? (
          <p className="muted">
            {t("startedFrom")}{" "}
            <Link to="/runs/$run" params={{ run: from }} className="code">
              {from.slice(0, 8)}
            </Link>
          </p>
        ) : null}
      </header>
      {mayRead && mayStart ? <Loaded key={`${name} ${from}`} name={name} from={from} /> : <Forbidden right={missing} />}
    </main>
  );
}

function Loaded({ name, from }: { name: string; from: string }) {
  const flow = useQuery({ queryKey: ["flows", "one", name], queryFn: () => getFlow(name) });
  const search = useSearch({ strict: false });
  const version = flow.data ? versionIn(flow.data, search.version) : undefined;
  const schema = useQuery({
    queryKey: ["flows", "schema", name, version?.id],
    queryFn: () => getInputSchema(name, version!.id),
    enabled: version !== undefined,
    staleTime: Number.POSITIVE_INFINITY,
    placeholderData: keepPreviousData,
  });
  const given = useQuery({ queryKey: ["flows", "input", from], queryFn: () => inputOf(from), enabled: from !== "", staleTime: Number.POSITIVE_INFINITY });
  if (flow.isPending || (version && schema.isPending) || (from !== "" && given.isPending)) return <Skeleton />;
  if (isLost(flow)) return <Problem error={flow.error} onRetry={() => void flow.refetch()} />;
  if (isLost(schema)) return <Problem error={schema.error} onRetry={() => void schema.refetch()} />;
  if (isLost(given)) return <Problem error={given.error} onRetry={() => void given.refetch()} />;
  return <StartForm flow={flow.data} schema={schema.data ?? NOTHING} given={given.data ?? null} />;
}
