/** What waits: runs by lane, limits, and holds by age. Each bar stands beside its number. */
import { useQuery } from "@tanstack/react-query";
import { duration } from "@/models/time";
import {
  type HoldFigures, type Lane, type Limit, type Times, type Unserved, getFigures, getHoldFigures, listLimits,
} from "@/services/operations";
import { Answered, Bar, type Column, EVERY, None, Table } from "./Panel";
import { ageWord, shareOf } from "./panels";
import { t } from "./text";

const age = (seconds: number) => (seconds > 0 ? duration(seconds * 1000) : <None />);

function laneColumns(lanes: Lane[]): Column<Lane>[] {
  const largest = Math.max(...lanes.map((each) => each.ready));
  return [
    { label: t("lane"), cell: (row) => row.lane },
    { label: t("ready"), cell: (row) => <Bar value={row.ready} share={shareOf(row.ready, largest)} /> },
    { label: t("running"), cell: (row) => row.running, isNumber: true },
    { label: t("inLine"), cell: (row) => row.inLine, isNumber: true },
    { label: t("oldest"), cell: (row) => age(row.oldestSeconds), isNumber: true },
  ];
}

const UNSERVED: Column<Unserved>[] = [
  { label: t("flow"), cell: (row) => row.flow },
  { label: t("version"), cell: (row) => <span className="code">{row.version}</span> },
  { label: t("lane"), cell: (row) => row.lane },
  { label: t("ready"), cell: (row) => row.ready, isNumber: true },
  { label: t("oldest"), cell: (row) => age(row.oldestSeconds), isNumber: true },
];

const LIMITS: Column<Limit>[] = [
  { label: t("limit"), cell: (row) => <span className="code">{row.name}</span> },
  { label: t("atOnce"), cell: (row) => row.concurrency ?? <None />, isNumber: true },
  { label: t("rate"), cell: (row) => row.rate || <None />, isNumber: true },
  { label: t("running"), cell: (row) => row.running, isNumber: true },
  { label: t("waiting"), cell: (row) => row.waiting, isNumber: true },
];

export function Backlog() {
  const figures = useQuery({ queryKey: ["operations", "figures"], queryFn: getFigures, refetchInterval: EVERY });
  const limits = useQuery({ queryKey: ["operations", "limits"], queryFn: listLimits, refetchInterval: EVERY });
  const holds = useQuery({ queryKey: ["operations", "holds"], queryFn: getHoldFigures, refetchInterval: EVERY * 4 });
  return (
    <>
      <h2>{t("runsByLane")}</h2>
      <Answered query={figures}>
        {({ lanes, unserved }) => (
          <>
            <Table label={t("runsByLane")} rows={lanes} columns={laneColumns(lanes)} keyOf={(row) => row.lane} empty={t("noBacklog")} hint={t("noBacklogHint")} />
            {unserved.length > 0 ? (
              <>
                <h2>{t("unserved")}</h2>
                <Table label={t("unserved")} rows={unserved} columns={UNSERVED} keyOf={(row) => `${row.lane} ${row.flow} ${row.version}`} empty="" />
              </>
            ) : null}
          </>
        )}
      </Answered>
      <h2>{t("holds")}</h2>
      <Answered query={holds}>{(found) => <Holds figures={found} />}</Answered>
      <h2>{t("limits")}</h2>
      <Answered query={limits}>
        {(rows) => <Table label={t("limits")} rows={rows} columns={LIMITS} keyOf={(row) => row.name} empty={t("noLimits")} hint={t("noLimitsHint")} />}
      </Answered>
    </>
  );
}

type Age = HoldFigures["byAge"][number];
type Step = Times & { what: string };

const STEPS: Column<Step>[] = [
  { label: t("timeTo"), cell: (row) => row.what },
  { label: t("count"), cell: (row) => row.count, isNumber: true },
  { label: t("half"), cell: (row) => (row.p50 === null ? <None /> : duration(row.p50 * 1000)), isNumber: true },
  { label: t("most"), cell: (row) => (row.p95 === null ? <None /> : duration(row.p95 * 1000)), isNumber: true },
];

function ageColumns(ages: Age[]): Column<Age>[] {
  const largest = Math.max(0, ...ages.map(([, count]) => count));
  return [
    { label: t("age"), cell: ([name]) => ageWord(name) },
    { label: t("open"), cell: ([, count]) => <Bar value={count} share={shareOf(count, largest)} /> },
  ];
}

function Holds({ figures }: { figures: HoldFigures }) {
  const steps: Step[] = [
    { what: t("timeToView"), ...figures.view },
    { what: t("timeToClaim"), ...figures.claim },
    { what: t("timeToDecision"), ...figures.decision },
  ];
  return (
    <>
      <div className="side-by-side">
        <Table label={t("holdsByAge")} rows={figures.byAge} columns={ageColumns(figures.byAge)} keyOf={([name]) => name} empty={t("noHolds")} hint={t("noHoldsHint")} />
        <Table label={t("timeTo")} rows={steps} columns={STEPS} keyOf={(row) => row.what} empty="" />
      </div>
      {figures.breachRate === null ? null : <p className="muted">{t("breaches", { rate: figures.breachRate })}</p>}
    </>
  );
}
