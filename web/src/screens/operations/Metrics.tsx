/** Charts of the last hours and days, each with its numbers. */
import { useQuery } from "@tanstack/react-query";
import { Link, useSearch } from "@tanstack/react-router";
import { Suspense, lazy } from "react";
import { Moment } from "@/components/Moment";
import { serverNow } from "@/components/useNow";
import { type Metric, getMetric } from "@/services/operations";
import { CHARTS, type ChartTerms, SPANS, type Span, drawn, isEmpty, latest, spanOf, valueText, windowOf } from "./charts";
import { Answered, type Column, EVERY, None, Table } from "./Panel";
import { t } from "./text";
import { useScheme } from "./useScheme";

// uPlot is loaded only here.
const Chart = lazy(() => import("./Chart"));

export function Metrics() {
  const span = spanOf(useSearch({ strict: false }).span);
  return (
    <>
      <Spans span={span} />
      <div className="charts">
        {CHARTS.map((terms) => (
          <ChartCard key={terms.name} terms={terms} span={span} />
        ))}
      </div>
    </>
  );
}

function Spans({ span }: { span: Span }) {
  return (
    <nav className="choices" aria-label={t("span")}>
      {(Object.keys(SPANS) as Span[]).map((name) => (
        <Link
          key={name}
          to="/operations/$panel"
          params={{ panel: "metrics" }}
          search={{ span: name }}
          aria-current={name === span ? "true" : undefined}
        >
          {SPANS[name].label}
        </Link>
      ))}
    </nav>
  );
}

function ChartCard({ terms, span }: { terms: ChartTerms; span: Span }) {
  const metric = useQuery({
    queryKey: ["operations", "metric", terms.name, span],
    queryFn: () => getMetric(terms.name, windowOf(span, serverNow())),
    refetchInterval: EVERY * 6,
  });
  return (
    <section className="chart-card panel" aria-label={terms.title}>
      <h2>{terms.title}</h2>
      <Answered query={metric}>{(found) => <Drawn terms={terms} metric={found} />}</Answered>
    </section>
  );
}

function Drawn({ terms, metric }: { terms: ChartTerms; metric: Metric }) {
  const scheme = useScheme();
  if (isEmpty(terms, metric)) return <p className="muted chart-empty">{t(terms.name === "breaches" ? "nothingMissed" : "nothingMeasured")}</p>;
  return (
    <>
      <p className="away">{t("chartOf", { name: terms.title, latest: latest(terms, metric) })}</p>
      <ul className="legend" aria-hidden="true">
        {drawn(terms).map((line) => (
          <li key={line.column}>
            <span className={`swatch ink-${line.role}`} />
            {line.label}
          </li>
        ))}
      </ul>
      <div className="chart" aria-hidden="true">
        <Suspense fallback={null}>
          {/* The colours of a canvas are read once: another scheme draws it again. */}
          <Chart key={scheme} terms={terms} metric={metric} />
        </Suspense>
      </div>
      {metric.readSince === null ? null : <p className="muted small">{t("readSince")} <Moment at={metric.readSince} /></p>}
      <details className="numbers">
        <summary>{t("numbers")}</summary>
        <Table label={terms.title} rows={metric.points.toReversed()} columns={columnsOf(terms, metric)} keyOf={(row) => row.at} empty="" />
      </details>
    </>
  );
}

type Point = Metric["points"][number];

function columnsOf(terms: ChartTerms, metric: Metric): Column<Point>[] {
  const cell = (column: string) => (row: Point) => {
    const value = row.values[metric.columns.indexOf(column)];
    return value === null || value === undefined ? <None /> : valueText(terms, column, value);
  };
  return [
    { label: t("step"), cell: (row) => <Moment at={row.at} /> },
    ...terms.lines.map((line) => ({ label: line.label, cell: cell(line.column), isNumber: true })),
  ];
}
