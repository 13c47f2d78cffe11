/** A row of links to the parts of a page. On a narrow page it scrolls; the current part is always in view. */
import { type ReactNode, useEffect, useRef } from "react";

export function TabRow({ label, current, children }: { label: string; current: string; children: ReactNode }) {
  const row = useRef<HTMLElement>(null);
  useEffect(() => {
    const link = row.current?.querySelector<HTMLElement>('[aria-current="page"]');
    if (!row.current || !link || current === "") return;
    const outer = row.current.getBoundingClientRect();
    const inner = link.getBoundingClientRect();
    if (inner.left < outer.left || inner.right > outer.right) row.current.scrollLeft += inner.left - outer.left - (outer.width - inner.width) / 2;
  }, [current]);
  return (
    <nav ref={row} className="tabs" aria-label={label}>
      {children}
    </nav>
  );
}
