/** What a person is notified of, where they are addressed personally. */
import { Saved, Switch } from "./Choice";
import { t } from "./text";

export function Notifications() {
  return (
    <Saved>
      {(chosen, save) => (
        <>
          <p className="muted">{t("firstNotice")}</p>
          <Switch label={t("reminders")} hint={t("remindersHint")} checked={chosen.reminders} onChange={(on) => save({ reminders: on })} />
          <Switch label={t("outcomes")} hint={t("outcomesHint")} checked={chosen.outcomes} onChange={(on) => save({ outcomes: on })} />
        </>
      )}
    </Saved>
  );
}
