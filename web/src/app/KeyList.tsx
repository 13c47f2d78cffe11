import { Dialog } from "@/components/Dialog";
import { shell } from "@/locales/en/shell";
import { textOf } from "@/locales/text";
import { Keys } from "./Keys";
import { areLettersOn, useBoundKeys } from "./useKeys";

const t = textOf(shell);

export default function KeyList({ onClose }: { onClose: () => void }) {
  const keys = useBoundKeys();
  const groups = [...new Set(keys.map((each) => each.group))];
  return (
    <Dialog title={t("keysTitle")} onClose={onClose}>
      {areLettersOn() ? null : <p className="muted">{t("keysOff")}</p>}
      {groups.map((group) => (
        <section key={group}>
          <h3 className="group-title">{group}</h3>
          <dl className="keys">
            {keys
              .filter((each) => each.group === group)
              .map((each) => (
                <div key={each.keys}>
                  <dt>{each.label}</dt>
                  <dd>
                    <Keys keys={each.keys} />
                  </dd>
                </div>
              ))}
          </dl>
        </section>
      ))}
    </Dialog>
  );
}
