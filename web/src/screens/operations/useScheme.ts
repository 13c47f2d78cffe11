/** Changes when the page becomes light or dark, by the system or by choice. */
import { useSyncExternalStore } from "react";

const dark = () => window.matchMedia("(prefers-color-scheme: dark)");

function follow(changed: () => void): () => void {
  const query = dark();
  const observer = new MutationObserver(changed);
  observer.observe(document.documentElement, { attributeFilter: ["data-theme"] });
  query.addEventListener("change", changed);
  return () => {
    observer.disconnect();
    query.removeEventListener("change", changed);
  };
}

const scheme = () => `${document.documentElement.dataset.theme ?? ""} ${dark().matches}`;

export function useScheme(): string {
  return useSyncExternalStore(follow, scheme);
}
