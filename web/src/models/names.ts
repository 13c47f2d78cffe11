/** Names as people read them: of nodes inside maps and sub-flows, and of versions. */

// A part of a stored label: node, visit, how often its node had failed before, item.
const PART = /^(.+)\.(\d+)(?:~\d+)?\[(\d+)\]$/;

/** `each[110]/fetch` for `each.1[110]/fetch`; only later visits are numbered: `each.2[110]/fetch`. */
export function shownName(label: string): string {
  const parts = label.split("/");
  const around = parts.slice(0, -1).map((part) => PART.exec(part));
  if (around.includes(null)) return label;
  const shown = around.map((found) => `${found![1]}${found![2] === "1" ? "" : `.${found![2]}`}[${found![3]}]`);
  return [...shown, parts.at(-1)].join("/");
}

/** `g1-a0881c93`: its dialect and eight digits. */
export function shortVersion(id: string): string {
  return id.slice(0, id.indexOf("-") + 9);
}
