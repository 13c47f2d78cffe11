import { Notice } from "@/components/Problem";
import { t } from "./text";

export function Screen() {
  return (
    <main id="main" tabIndex={-1} className="page">
      <h1>{t("title")}</h1>
      <Notice title={t("empty")} />
    </main>
  );
}
