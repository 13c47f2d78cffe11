/** One chart, drawn by uPlot on a canvas. What it shows is beside it as a table. */
import { useEffect, useRef } from "react";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import type { Metric } from "@/services/operations";
import { type ChartTerms, DURATION_STEPS, axisWidth, dataOf, drawn, timeTick } from "./charts";

const HEIGHT = 180;
const AXIS = { font: "12px system-ui, sans-serif", ticks: { show: false } };

export default function Chart({ terms, metric }: { terms: ChartTerms; metric: Metric }) {
  const place = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const within = place.current;
    if (within === null) return;
    const chart = new uPlot(optionsOf(terms, within), dataOf(terms, metric), within);
    const observer = new ResizeObserver(() => chart.setSize({ width: within.clientWidth, height: HEIGHT }));
    observer.observe(within);
    return () => {
      observer.disconnect();
      chart.destroy();
    };
  }, [terms, metric]);
  return <div ref={place} className="chart-canvas" />;
}

function optionsOf(terms: ChartTerms, within: HTMLElement): uPlot.Options {
  const ink = (role: string) => colourOf(within, `ink-${role}`);
  const axis = { ...AXIS, stroke: ink("muted"), grid: { stroke: ink("line"), width: 1 } };
  return {
    width: within.clientWidth,
    height: HEIGHT,
    cursor: { show: false },
    legend: { show: false },
    scales: { y: { range: (_chart, _least, most) => [0, Math.max(1, most * 1.1)] } },
    axes: [{ ...axis, grid: { show: false }, size: 28, space: 70, values: (chart, splits) => splits.map((each) => timeTick(each, spanOf(chart))) }, { ...axis, size: (_chart, texts) => axisWidth(texts ?? []), values: (_chart, splits) => splits.map((each) => tick(terms, each)), ...(terms.name === "time_to_decision" ? { incrs: DURATION_STEPS } : {}) }],
    series: [
      {},
      ...drawn(terms).map((line) => ({
        stroke: ink(line.role),
        width: 2,
        // Between gaps a value has no line.
        points: { show: terms.name === "time_to_decision", size: 6, fill: ink(line.role) },
        ...(terms.isBars ? { fill: ink(line.role), points: { show: false }, paths: uPlot.paths.bars?.({ size: [0.6, 24] }) } : {}),
      })),
    ],
  };
}

function spanOf(chart: uPlot): number {
  return (chart.scales.x?.max ?? 0) - (chart.scales.x?.min ?? 0);
}

/** Counts are whole. */
function tick(terms: ChartTerms, value: number): string {
  if (terms.name !== "time_to_decision" && !Number.isInteger(value)) return "";
  return value === 0 ? "0" : terms.text(value);
}

/** As the stylesheet has it now: a canvas knows no custom properties. */
function colourOf(within: HTMLElement, name: string): string {
  const probe = document.createElement("span");
  probe.className = name;
  within.append(probe);
  const { color } = getComputedStyle(probe);
  probe.remove();
  return color;
}
