/** Small drawings, hidden from screen readers: the word beside them says the same. */
import type { Icon as Name } from "@/words";

const PATHS: Record<Name | "arrow" | "external" | "dots" | "search" | "speech" | "up" | "warning", string> = {
  circle: "M8 2.5a5.5 5.5 0 1 0 0 11 5.5 5.5 0 0 0 0-11Z",
  play: "M5 3.2v9.6L12.6 8 5 3.2Z",
  moon: "M13 9.6A5.6 5.6 0 0 1 6.4 3 5.5 5.5 0 1 0 13 9.6Z",
  person: "M8 8a2.6 2.6 0 1 0 0-5.2A2.6 2.6 0 0 0 8 8Zm-5 5.4c.4-2.4 2.4-3.9 5-3.9s4.6 1.5 5 3.9",
  pause: "M5.5 3.5v9M10.5 3.5v9",
  broken: "M8 2.5a5.5 5.5 0 0 1 4.8 2.8M13.4 9A5.5 5.5 0 0 1 3.7 11.4M2.5 8c0-1.2.4-2.4 1.1-3.3",
  check: "m3.2 8.6 3.1 3.1 6.5-7.2",
  cross: "m4 4 8 8M12 4l-8 8",
  bar: "M3 8h10",
  arrow: "m6 3.5 4.5 4.5L6 12.5",
  external: "M6.5 3.5h-3v9h9v-3M9 3h4v4M13 3 7.5 8.5",
  dots: "M3.5 8h.01M8 8h.01M12.5 8h.01",
  search: "M7 12a5 5 0 1 0 0-10 5 5 0 0 0 0 10Zm3.6-1.4L14 14",
  speech: "M2.5 3.5h11v7H7.5L4.5 13v-2.5h-2Z",
  warning: "M8 2.5 14 13H2ZM8 6.5v3M8 11.3h.01",
  up: "M8 12.5v-9M4.2 7.3 8 3.5l3.8 3.8",
};

export function Icon({ name }: { name: keyof typeof PATHS }) {
  return (
    <svg className="icon" viewBox="0 0 16 16" width="16" height="16" aria-hidden="true" focusable="false">
      <path d={PATHS[name]} />
    </svg>
  );
}
