/** Who has decided what, while it can still be undone. */
import { clock } from "@/models/time";
import type { Hold } from "@/services/holds";
import { t } from "./text";

export function placedText({ placedBy, placedLabel, placedUntil }: Hold): string {
  return t("placed", { person: placedBy, decision: placedLabel || t("submit"), time: placedUntil ? clock(new Date(placedUntil)) : "" });
}
