import { type CanvasView, graphView } from "@/models/canvasView";
import { arrangeGraph } from "@/services/documents";
import { getGraph } from "@/services/flows";

/** A version of any flow, placed by the server. */
export async function loadGraph(flow: string, version: string): Promise<CanvasView> {
  const graph = await getGraph(flow, version);
  return graphView(graph, await arrangeGraph(graph));
}
