/** What a judge had answered before people were asked, beside what they decided. */
import { StatusBadge } from "@/components/StatusBadge";
import { Text } from "@/components/Value";
import type { Shadow } from "@/services/holds";
import type { Shown } from "@/words";
import { t } from "./text";

export function ShadowAnswer({ shadow }: { shadow: Shadow }) {
  const { judge, label, confidence, reasoning, error, agrees, isIntact } = shadow;
  return (
    <section className="shadow-answer" aria-label={t("shadow")}>
      <h3>{t("shadow")}</h3>
      {error ? (
        <p className="muted">{t("shadowNone", { judge, why: error })}</p>
      ) : (
        <p className="outcome-line">
          <strong>{label}</strong>
          {isIntact && agrees !== null ? <StatusBadge shown={agrees ? AGREES : DIFFERS} /> : null}
          <span className="muted">
            {t("shadowBy", { judge })}
            {confidence === null ? "" : ` · ${t("shadowSure", { share: confidence })}`}
          </span>
        </p>
      )}
      {isIntact ? null : <p className="late">{t("shadowChanged")}</p>}
      {reasoning ? <blockquote><Text text={reasoning} /></blockquote> : null}
    </section>
  );
}

const AGREES: Shown = { word: t("shadowAgrees"), role: "completed", icon: "check" };
const DIFFERS: Shown = { word: t("shadowDiffers"), role: "interrupted", icon: "cross" };
