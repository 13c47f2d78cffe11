import { Notice } from "@/components/Problem";
import { t } from "./text";

export function EditorScreen() {
  return (
    <main id="main" tabIndex={-1} className="page">
      <h1>{t("editor")}</h1>
      <Notice title={t("editorLater")} />
    </main>
  );
}
