/** The events of a run, as they are stored; only those in view are in the page. Each opens to all of its data. */
import { useVirtualizer } from "@tanstack/react-virtual";
import { useRef, useState } from "react";
import { Moment } from "@/components/Moment";
import { Problem } from "@/components/Problem";
import { Skeleton } from "@/components/Skeleton";
import { Value } from "@/components/Value";
import { writeJson } from "@/models/json";
import { plainText } from "@/models/values";
import { shownName } from "@/models/names";
import { toggled } from "@/models/selection";
import type { RunEvent } from "@/services/runHistory";
import { eventWord, t } from "./text";
import { useEvents, useNear } from "./useEvents";

const HEIGHT = 37;
const MOST_LETTERS = 300;

/** `until`: the time of the record that is shown; what came later is faint. `last`: the number of the latest event. */
export function Events({ run, until, last }: { run: string; until: string | undefined; last: number }) {
  const scroll = useRef<HTMLDivElement>(null);
  const [open, setOpen] = useState<ReadonlySet<string>>(new Set());
  const found = useEvents(run);
  const { query, events } = found;
  const offset = found.above();
  // oxlint-disable-next-line react/incompatible-library -- the compiler is not used
  const list = useVirtualizer({ count: offset + events.length, getScrollElement: () => scroll.current, estimateSize: () => HEIGHT, overscan: 12 });
  const items = list.getVirtualItems();
  useNear(found, items[0]?.index ?? 0, items.at(-1)?.index ?? 0, last);
  if (query.isPending) return <Skeleton />;
  if (query.isError && events.length === 0) return <Problem error={query.error} onRetry={() => void query.refetch()} />;
  return (
    // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- what scrolls must be reached by keys
    <div ref={scroll} className="events panel" tabIndex={0}>
      <ol aria-label={t("events")} style={{ height: list.getTotalSize() }}>
        {items.map((item) => {
          const event = events[item.index - offset];
          if (event === undefined) return <li key={item.index} aria-hidden="true" style={{ transform: `translateY(${item.start}px)` }} />;
          const name = String(event.number);
          return (
            <li key={name} ref={list.measureElement} data-index={item.index} className={until !== undefined && event.at > until ? "later" : ""} style={{ transform: `translateY(${item.start}px)` }}>
              <EventRow event={event} isOpen={open.has(name)} onToggle={() => setOpen(toggled(open, name))} />
            </li>
          );
        })}
      </ol>
    </div>
  );
}

type EventProps = { event: RunEvent; isOpen: boolean; onToggle: () => void };

function EventRow({ event, isOpen, onToggle }: EventProps) {
  const isEmpty = Object.keys(event.data).length === 0;
  return (
    <>
      <span className="muted number">{event.number}</span>
      <Moment at={event.at} seconds />
      <strong title={event.type}>{eventWord(event.type)}</strong>
      <span>{shownName(event.scope + event.node)}</span>
      {isEmpty ? <span /> : (
        <button type="button" className="event-data muted code" aria-expanded={isOpen} onClick={onToggle}>
          <span className="away">{t("eventData", { number: event.number })} </span>
          {isOpen ? t("lessData") : plainText(writeJson(event.data).slice(0, MOST_LETTERS))}
        </button>
      )}
      {isOpen ? <div className="event-open"><Value value={event.data} rawNames /></div> : null}
    </>
  );
}
