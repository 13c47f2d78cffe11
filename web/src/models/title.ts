/** The title of a page: what it shows first, then where that is. */

const MOST = 80;

export function titleOf(parts: readonly string[]): string {
  return [...parts.map((each) => shortened(each.replaceAll(/\s+/g, " ").trim())).filter(Boolean), "Holdfast"].join(" · ");
}

function shortened(text: string): string {
  const letters = Array.from(text);
  return letters.length > MOST ? `${letters.slice(0, MOST - 1).join("").trimEnd()}…` : text;
}

/** What counts as another page. The questions of the inbox are one: the focus moves to what is read there. */
export function pageOf(path: string): string {
  return /\/inbox(\/|$)/.test(path) ? "/inbox" : path.replace(/\/+$/, "");
}

/** A question without its first line, if that is its title, which stands above it. */
export function afterTitle(prompt: string, title: string): string {
  const [first = "", ...rest] = prompt.split("\n");
  return first.trim() === title.trim() ? rest.join("\n").trim() : prompt;
}
