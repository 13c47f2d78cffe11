/** What the charts of Operations show, and their numbers as text. */
import { clock, duration, shortDay } from "@/models/time";
import type { Metric, MetricName } from "@/services/operations";
import { t } from "./text";

export type Role = "accent" | "running" | "sleeping" | "input" | "interrupted" | "failed" | "muted";
export type Line = { column: string; label: string; role: Role; isDrawn: boolean };
export type ChartTerms = { name: MetricName; title: string; isBars: boolean; lines: Line[]; text: (value: number) => string };

export const SPANS = {
  day: { hours: 24, stepHours: 1, label: t("day") },
  week: { hours: 168, stepHours: 6, label: t("week") },
  month: { hours: 720, stepHours: 24, label: t("month") },
} as const;
export type Span = keyof typeof SPANS;
const HOUR = 3_600_000;

/** Whole steps, the last of which is not over yet. */
export function windowOf(span: Span, now: number): { from: Date; to: Date; stepHours: number } {
  const { hours, stepHours } = SPANS[span];
  const to = Math.ceil((now + 1) / (stepHours * HOUR)) * stepHours * HOUR;
  return { from: new Date(to - hours * HOUR), to: new Date(to), stepHours };
}

export function spanOf(given: string | undefined): Span {
  return given !== undefined && Object.hasOwn(SPANS, given) ? (given as Span) : "day";
}

const line = (column: string, label: string, role: Role, isDrawn = true): Line => ({ column, label, role, isDrawn });
const seconds = (value: number) => duration(value * 1000);
const count = (value: number) => t("number", { count: value });

export const CHARTS: ChartTerms[] = [
  {
    name: "time_to_decision",
    title: t("timeToDecisionChart"),
    isBars: false,
    lines: [line("p50", t("p50"), "accent"), line("p95", t("p95"), "interrupted"), line("count", t("decisions"), "muted", false)],
    text: seconds,
  },
  {
    name: "backlog",
    title: t("backlogChart"),
    isBars: false,
    lines: [
      line("under_1h", t("under_1h"), "accent"),
      line("under_1d", t("under_1d"), "running"),
      line("under_7d", t("under_7d"), "interrupted"),
      line("older", t("older"), "failed"),
    ],
    text: count,
  },
  { name: "breaches", title: t("breachesChart"), isBars: true, lines: [line("breaches", t("missed"), "failed")], text: count },
  {
    name: "runs",
    title: t("runsChart"),
    isBars: false,
    lines: [line("completed", t("completed"), "accent"), line("failed", t("failedRuns"), "failed"), line("cancelled", t("cancelled"), "muted")],
    text: count,
  },
];

/** A value of a column, as text; a column that counts is no time. */
export function valueText(terms: ChartTerms, column: string, value: number): string {
  return column === "count" ? count(value) : terms.text(value);
}

/** Times in seconds, then the values of each drawn column, as uPlot wants them. A line of nothing but zeros would hide others. */
export function dataOf(terms: ChartTerms, metric: Metric): [number[], ...(number | null)[][]] {
  const times = metric.points.map((point) => Date.parse(point.at) / 1000);
  const columns = drawn(terms).map((each) => columnOf(metric, each.column));
  return [times, ...columns.map((values) => (values.some(Boolean) ? values : values.map(() => null)))];
}

/** On the axis: hours of a day, else days. */
export function timeTick(at: number, spanSeconds: number, zone?: string): string {
  return spanSeconds <= 2 * 86_400 ? clock(new Date(at * 1000), zone) : shortDay(new Date(at * 1000), zone);
}

/** Seconds between the lines of an axis of durations: none is `4 min 10 s`. */
export const DURATION_STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400, 172_800, 604_800, 1_209_600, 2_592_000];
const LETTER = 7;

/** In pixels, so that no text of the axis is cut. */
export function axisWidth(texts: readonly string[]): number {
  return Math.max(40, ...texts.map((each) => each.length * LETTER + 16));
}

export function drawn(terms: ChartTerms): Line[] {
  return terms.lines.filter((each) => each.isDrawn);
}

export function columnOf(metric: Metric, column: string): (number | null)[] {
  const place = metric.columns.indexOf(column);
  return metric.points.map((point) => point.values[place] ?? null);
}

/** Whether there is anything to draw. */
export function isEmpty(terms: ChartTerms, metric: Metric): boolean {
  return drawn(terms).every((each) => columnOf(metric, each.column).every((value) => value === null || value === 0));
}

/** The last known values, for those who hear the chart: `Median 3 min, 95 % 1 h`. */
export function latest(terms: ChartTerms, metric: Metric): string {
  return terms.lines
    .map((each) => {
      const known = columnOf(metric, each.column).findLast((value) => value !== null);
      return known === undefined || known === null ? "" : `${each.label} ${valueText(terms, each.column, known)}`;
    })
    .filter(Boolean)
    .join(", ");
}
