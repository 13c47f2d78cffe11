import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useRight } from "@/app/useSession";
import { Moment } from "@/components/Moment";
import { StatusBadge } from "@/components/StatusBadge";
import { type Schedule, listSchedules, nextTimes, pauseSchedule, resumeSchedule, triggerSchedule } from "@/services/operations";
import { word } from "@/words";
import { Action } from "./Action";
import { Answered, type Column, EVERY, None, Table } from "./Panel";
import { More } from "./More";
import { scheduleWord } from "./panels";
import { t } from "./text";

const COLUMNS: Column<Schedule>[] = [
  { label: t("schedule"), cell: (row) => row.name },
  { label: t("state"), cell: (row) => <StatusBadge shown={scheduleWord(row)} /> },
  { label: t("flow"), cell: (row) => row.flow },
  { label: t("when"), cell: (row) => <><span className="code">{row.when}</span> <span className="muted">{row.zone}</span></> },
  { label: t("next"), cell: (row) => (row.nextAt && !row.paused ? <Moment at={row.nextAt} /> : <None />) },
  { label: t("last"), cell: (row) => <LastRun schedule={row} /> },
];

function LastRun({ schedule }: { schedule: Schedule }) {
  const moment = schedule.lastAt === null ? null : <Moment at={schedule.lastAt} />;
  if (schedule.lastRun === null) return moment ?? <None />;
  // A run that was asked for is no instant of the schedule.
  return <Link to="/runs/$run" params={{ run: schedule.lastRun }}>{moment ?? t("lastRun")}</Link>;
}

export function Schedules() {
  const mayWrite = useRight("schedules:write");
  const pages = useInfiniteQuery({
    queryKey: ["operations", "schedules"],
    queryFn: ({ pageParam }) => listSchedules(pageParam),
    initialPageParam: null as string | null,
    getNextPageParam: (last) => last.next,
    refetchInterval: EVERY,
  });
  return (
    <>
      <Answered query={pages}>
        {(data) => (
          <Table
            label={t("schedules")}
            rows={data.pages.flatMap((page) => page.items)}
            columns={COLUMNS}
            keyOf={(row) => row.name}
            empty={t("noSchedules")}
            hint={t("noSchedulesHint")}
            Actions={mayWrite ? Actions : undefined}
            More={Next}
          />
        )}
      </Answered>
      <More query={pages} />
    </>
  );
}

function Actions({ row: { name, paused } }: { row: Schedule }) {
  return (
    <>
      <Action
        label={t("runNow")}
        of={name}
        title={t("runNowTitle", { name })}
        text={t("runNowText")}
        act={() => triggerSchedule(name)}
        done={t("runNowDone", { name })}
      />
      {paused ? (
        <Action
          label={word("resume")}
          of={name}
          title={t("resumeTitle", { name })}
          text={t("resumeText")}
          act={() => resumeSchedule(name)}
          done={t("resumeDone", { name })}
        />
      ) : (
        <Action
          label={t("pause")}
          of={name}
          title={t("pauseTitle", { name })}
          text={t("pauseText")}
          asksReason
          act={(reason) => pauseSchedule(name, reason)}
          done={t("pauseDone", { name })}
        />
      )}
    </>
  );
}

function Next({ row: schedule }: { row: Schedule }) {
  const times = useQuery({ queryKey: ["operations", "schedules", schedule.name, "next"], queryFn: () => nextTimes(schedule.name) });
  return (
    <Answered query={times}>
      {(found) => (
        <dl className="more-facts">
          <div>
            <dt>{t("nextTimes")}</dt>
            <dd>
              {found.length === 0 ? <None /> : null}
              <ol className="plain-list">
                {found.map((at) => (
                  <li key={at}>
                    <Moment at={at} />
                  </li>
                ))}
              </ol>
            </dd>
          </div>
          {schedule.reason ? (
            <div>
              <dt>{t("reason")}</dt>
              <dd>{schedule.reason}</dd>
            </div>
          ) : null}
          {schedule.trouble ? (
            <div>
              <dt>{t("scheduleTrouble")}</dt>
              <dd className="late">{schedule.trouble}</dd>
            </div>
          ) : null}
        </dl>
      )}
    </Answered>
  );
}
