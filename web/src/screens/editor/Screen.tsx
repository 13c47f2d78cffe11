/** The editor of a flow document. A flow of code is shown and cannot be changed here. */
import { useQuery } from "@tanstack/react-query";
import { useParams } from "@tanstack/react-router";
import { useRight } from "@/app/useSession";
import { Boundary } from "@/components/Boundary";
import { isLost } from "@/components/isLost";
import { Forbidden, Problem } from "@/components/Problem";
import { Skeleton } from "@/components/Skeleton";
import { useTitle } from "@/components/useTitle";
import { NEW, type EditedDocument, getDocument } from "@/services/documents";
import { listFlows } from "@/services/flows";
import { CodeView } from "./CodeView";
import "./editor.css";
import { t } from "./text";
import { Workspace } from "./Workspace";

export function Screen() {
  const { document: name = "" } = useParams({ strict: false });
  const mayRead = useRight("flows:read");
  useTitle([name, t("editor")]);
  return (
    <main id="main" tabIndex={-1} className="editor">
      {mayRead ? <Loaded key={name} name={name} /> : <Forbidden right="flows:read" />}
    </main>
  );
}

function Loaded({ name }: { name: string }) {
  const opened = useQuery({ queryKey: ["documents", "one", name], queryFn: () => open(name), refetchOnWindowFocus: false, staleTime: Number.POSITIVE_INFINITY, gcTime: 0 });
  if (opened.isPending) return <Skeleton />;
  if (isLost(opened)) return <Problem error={opened.error} onRetry={() => void opened.refetch()} />;
  return <Boundary resetKey={name}>{opened.data === null ? <CodeView name={name} /> : <Workspace given={opened.data} />}</Boundary>;
}

/** null: a flow of this name comes from code. A name that nothing has yet is a new document. */
async function open(name: string): Promise<EditedDocument | null> {
  const flow = (await listFlows()).find((each) => each.name === name);
  if (flow && !flow.versions.some((each) => each.isDocument)) return null;
  const found = await getDocument(name);
  return found ?? { name, source: starter(name), format: "yaml", etag: NEW, savedBy: "", savedAt: "", version: "" };
}

function starter(name: string): string {
  return `holdfast: "1.0"
name: ${name}
nodes:
  - {id: start, type: start, position: {x: 0, y: 0}}
  - {id: done, type: end, position: {x: 0, y: 160}}
edges:
  - {source: start, target: done}
`;
}
