/** People with their absences, and groups. */
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useContext, useState } from "react";
import { useRight, useSession } from "@/app/useSession";
import { AbsenceForm } from "@/components/AbsenceForm";
import { Dialog } from "@/components/Dialog";
import { Moment } from "@/components/Moment";
import { StatusBadge } from "@/components/StatusBadge";
import { type Away, type Group, type Person, endAbsence, listGroups, listPeople, putAbsence } from "@/services/operations";
import { Action } from "./Action";
import { Announce } from "./Announce";
import { Answered, type Column, None, Table } from "./Panel";
import { t } from "./text";

const PEOPLE: Column<Person>[] = [
  { label: t("name"), cell: (row) => row.name || row.id },
  { label: t("account"), cell: (row) => <span className="code">{row.id}</span> },
  { label: t("email"), cell: (row) => row.email || <None /> },
  {
    label: t("state"),
    cell: (row) => (
      <StatusBadge
        shown={row.active ? { word: t("active"), role: "completed", icon: "check" } : { word: t("inactive"), role: "cancelled", icon: "bar" }}
      />
    ),
  },
  { label: t("absence"), cell: (row) => (row.away ? <Absence away={row.away} /> : <None />) },
];

const GROUPS: Column<Group>[] = [
  { label: t("group"), cell: (row) => row.name || row.key },
  { label: t("count"), cell: (row) => row.members.length, isNumber: true },
  { label: t("members"), cell: (row) => <span className="wrapped">{row.members.join(", ") || <None />}</span> },
];

function Absence({ away }: { away: Away }) {
  return (
    <>
      {t("substitute", { name: away.substitute })}
      {away.since ? <> {t("from")} <Moment at={away.since} /></> : null}
      {away.until ? <> {t("until")} <Moment at={away.until} /></> : null}
    </>
  );
}

export function Members() {
  const { directory } = useSession();
  // What is set in a directory that the server does not ask has no effect.
  const isUsed = directory === "store";
  const mayManage = useRight("admin:manage") && isUsed;
  const people = useQuery({ queryKey: ["operations", "people"], queryFn: listPeople });
  const groups = useQuery({ queryKey: ["operations", "groups"], queryFn: listGroups });
  return (
    <>
      {isUsed ? null : <p className="unused" role="note">{t("unusedDirectory", { directory })}</p>}
      <h2>{t("people")}</h2>
      <Answered query={people}>
        {(rows) => <Table label={t("people")} rows={rows} columns={PEOPLE} keyOf={(row) => row.id} empty={t("noPeople")} hint={t("noPeopleHint")} {...(mayManage ? { Actions: AbsenceAction } : {})} />}
      </Answered>
      <h2>{t("groups")}</h2>
      <Answered query={groups}>
        {(rows) => <Table label={t("groups")} rows={rows} columns={GROUPS} keyOf={(row) => row.key} empty={t("noGroups")} hint={t("noGroupsHint")} />}
      </Answered>
    </>
  );
}

function AbsenceAction({ row: person }: { row: Person }) {
  const [isOpen, setOpen] = useState(false);
  const client = useQueryClient();
  const say = useContext(Announce);
  const name = person.name || person.id;
  if (person.away) {
    return (
      <Action label={t("endAbsence")} of={name} title={t("endAbsenceTitle", { name })} text={t("endAbsenceText")} act={() => endAbsence(person.id)} done={t("endAbsenceDone", { name })} />
    );
  }
  const saved = () => {
    say(t("absenceDone", { name }));
    setOpen(false);
    void client.invalidateQueries({ queryKey: ["operations"] });
  };
  return (
    <>
      <button type="button" className="button compact" aria-label={t("actionOf", { label: t("setAbsence"), of: name })} onClick={() => setOpen(true)}>
        {t("setAbsence")}
      </button>
      {isOpen ? (
        <Dialog title={t("absenceOf", { name })} onClose={() => setOpen(false)}>
          <AbsenceForm person={person.id} hint={t("absenceHint", { name })} save={(away) => putAbsence(person.id, away)} onSaved={saved} />
        </Dialog>
      ) : null}
    </>
  );
}
