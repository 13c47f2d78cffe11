/** The words of a search of runs: `status:failed flow:claims`. */

export type RunQuery = { status: string[]; flow: string; wrong: string[] };

export function readRunQuery(text: string, statuses: readonly string[]): RunQuery {
  const found: RunQuery = { status: [], flow: "", wrong: [] };
  for (const word of text.match(/[^\s"]*"[^"]*"|\S+/g) ?? []) {
    const [name, ...rest] = word.split(":");
    const value = rest.join(":").replaceAll('"', "");
    if (name === "status" && statuses.includes(value)) found.status.push(value);
    else if (name === "flow" && value) found.flow = value;
    else found.wrong.push(word);
  }
  return found;
}

export function writeRunQuery(query: Pick<RunQuery, "status" | "flow">): string {
  const flow = /\s/.test(query.flow) ? `"${query.flow}"` : query.flow;
  return [...query.status.map((each) => `status:${each}`), ...(query.flow ? [`flow:${flow}`] : [])].join(" ");
}
