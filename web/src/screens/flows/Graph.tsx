/** The picture of a version, made by the server, and its nodes as a list. */
import { useQuery } from "@tanstack/react-query";
import { Notice, Problem } from "@/components/Problem";
import { Skeleton } from "@/components/Skeleton";
import { type Flow, type Version, drawingAddress, listNodes } from "@/services/flows";
import { effectWord } from "@/words";
import { t } from "./text";
import { versionIn } from "./versions";

export function Graph({ flow, wanted }: { flow: Flow; wanted: string | undefined }) {
  const version = versionIn(flow, wanted);
  if (version === undefined) return <Notice title={t("noVersion")} />;
  return (
    <div className="flow-graph">
      <Drawing flow={flow.name} version={version.id} />
      <Nodes flow={flow.name} version={version} />
    </div>
  );
}

/** An image: nothing in it can run. Screen readers get the list of nodes. */
export function Drawing({ flow, version }: { flow: string; version: string }) {
  return (
    // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- what scrolls must be reached by keys
    <figure className="drawing panel" tabIndex={0} aria-label={t("graph")}>
      <img src={drawingAddress(flow, version)} alt="" />
    </figure>
  );
}

function Nodes({ flow, version }: { flow: string; version: Version }) {
  const nodes = useNodes(flow, version.id);
  return (
    <section className="nodes panel" aria-label={t("nodes")}>
      <h2>{t("nodes")}</h2>
      {nodes.isPending ? <Skeleton rows={3} /> : null}
      {nodes.isError ? <Problem error={nodes.error} onRetry={() => void nodes.refetch()} /> : null}
      <ol>
        {nodes.data?.map((each) => (
          <li key={each.name}>
            <span>{each.name}</span>
            <span className="muted small">
              {[kindText(each.kind), effectWord(each.effect), each.isBreakpoint ? t("breakpoint") : ""].filter(Boolean).join(" · ")}
            </span>
          </li>
        ))}
      </ol>
    </section>
  );
}

export function useNodes(flow: string, version: string) {
  return useQuery({
    queryKey: ["flows", "nodes", flow, version],
    queryFn: () => listNodes(flow, version),
    staleTime: Number.POSITIVE_INFINITY,
  });
}

function kindText(kind: string): string {
  return kind.replaceAll("_", " ");
}
