/** A person's own choices, kept on the server, and their absence. */
import { type ReactNode, useId } from "react";
import { useRight } from "@/app/useSession";
import { Boundary } from "@/components/Boundary";
import { Forbidden } from "@/components/Problem";
import { useTitle } from "@/components/useTitle";
import { Absence } from "./Absence";
import { Appearance } from "./Appearance";
import { Saved, Switch } from "./Choice";
import { Notifications } from "./Notifications";
import "./settings.css";
import { t } from "./text";

export function Screen() {
  const mayRead = useRight("holds:read");
  useTitle([t("title")]);
  return (
    <main id="main" tabIndex={-1} className="page settings">
      <h1>{t("title")}</h1>
      <Setting title={t("appearance")}>
        <Appearance />
      </Setting>
      <Setting title={t("keys")}>
        <Saved>{(chosen, save) => <Switch label={t("letters")} hint={t("lettersHint")} checked={chosen.shortcuts} onChange={(on) => save({ shortcuts: on })} />}</Saved>
      </Setting>
      <Setting title={t("notifications")}>
        <Notifications />
      </Setting>
      <Setting title={t("absence")}>{mayRead ? <Absence /> : <Forbidden right="holds:read" />}</Setting>
    </main>
  );
}

function Setting({ title, children }: { title: string; children: ReactNode }) {
  const id = useId();
  return (
    <section className="panel setting" aria-labelledby={id}>
      <h2 id={id}>{title}</h2>
      <Boundary>{children}</Boundary>
    </section>
  );
}
