/** What a person has chosen for themselves, and their own absence. */
import type { Preferences as Wire } from "@client";
import { client, failureOf } from "./client";
import { personOf } from "./holds";
import type { Away } from "./operations";

export type Theme = "system" | "light" | "dark";
export type Preferences = {
  language: string | null;
  zone: string | null;
  theme: Theme;
  shortcuts: boolean;
  /** By mail, beside the first notice of a question. */
  reminders: boolean;
  outcomes: boolean;
};
/** `version`: saved only if nothing was saved elsewhere meanwhile. */
export type Kept = { chosen: Preferences; version: string };

export async function getPreferences(): Promise<Kept> {
  const reply = await client.request("getPreferences");
  return { chosen: preferencesOf(reply.body), version: reply.etag ?? "" };
}

export async function putPreferences({ chosen, version }: Kept): Promise<Kept> {
  const { language, zone, theme, shortcuts, reminders, outcomes } = chosen;
  const body: Wire = { language, time_zone: zone, theme, shortcuts, notifications: { reminders, outcomes } };
  const reply = await client.request("putPreferences", body, { ifMatch: version });
  return { chosen: preferencesOf(reply.body), version: reply.etag ?? "" };
}

/** Null: the person is not in the directory of this store, and has no absence here. */
export async function getOwnAbsence(): Promise<{ away: Away | null } | null> {
  try {
    const { away } = await client.getOwnPerson();
    if (away === null) return { away };
    return { away: { substitute: personOf(away.substitute), since: away.since ?? null, until: away.until ?? null } };
  } catch (error) {
    if (failureOf(error).kind === "missing") return null;
    throw error;
  }
}

export async function putOwnAbsence(away: Away): Promise<void> {
  await client.putOwnAway({ substitute: away.substitute, since: away.since, until: away.until });
}

export async function endOwnAbsence(): Promise<void> {
  await client.endOwnAway();
}

function preferencesOf(wire: Wire): Preferences {
  return {
    language: wire.language ?? null,
    zone: wire.time_zone ?? null,
    theme: wire.theme ?? "system",
    shortcuts: wire.shortcuts ?? true,
    reminders: wire.notifications?.reminders ?? true,
    outcomes: wire.notifications?.outcomes ?? true,
  };
}
