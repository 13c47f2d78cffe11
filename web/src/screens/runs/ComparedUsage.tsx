/** What both sides spent. */
import { differenceText } from "@/models/diff";
import { duration } from "@/models/time";
import type { Usage } from "@/services/comparison";
import { t } from "./text";

export function ComparedUsage({ spent: [before, after] }: { spent: [Usage, Usage] }) {
  const rows = [
    { name: t("steps"), from: String(before.steps), to: String(after.steps), by: differenceText(before.steps, after.steps) },
    { name: t("work"), from: duration(before.ms), to: duration(after.ms), by: workText(after.ms - before.ms) },
    { name: t("tokens"), from: String(before.tokens), to: String(after.tokens), by: differenceText(before.tokens, after.tokens) },
    { name: t("cost"), from: before.cost.toFixed(4), to: after.cost.toFixed(4), by: differenceText(before.cost, after.cost, 4) },
  ];
  return (
    <section className="panel compare-part">
      <h2>{t("spent")}</h2>
      <table className="values compare-usage">
        <thead>
          <tr>
            <th scope="col"><span className="away">{t("spent")}</span></th>
            <th scope="col">{t("compareFrom")}</th>
            <th scope="col">{t("compareTo")}</th>
            <th scope="col">{t("difference")}</th>
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={row.name}>
              <th scope="row">{row.name}</th>
              <td className="number">{row.from}</td>
              <td className="number">{row.to}</td>
              <td className="number">{row.by || "–"}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

function workText(ms: number): string {
  return Math.abs(ms) < 1 ? "" : `${ms > 0 ? "+" : "−"}${duration(ms)}`;
}
