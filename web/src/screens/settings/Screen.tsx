/** A person's own choices, kept on the server, and their absence. */
import { useRight } from "@/app/useSession";
import { Boundary } from "@/components/Boundary";
import { Forbidden } from "@/components/Problem";
import { Absence } from "./Absence";
import { Appearance } from "./Appearance";
import "./settings.css";
import { t } from "./text";

export function Screen() {
  const mayRead = useRight("holds:read");
  return (
    <main id="main" tabIndex={-1} className="page settings">
      <h1>{t("title")}</h1>
      <section className="panel setting" aria-labelledby="appearance">
        <h2 id="appearance">{t("appearance")}</h2>
        <Boundary>
          <Appearance />
        </Boundary>
      </section>
      <section className="panel setting" aria-labelledby="absence">
        <h2 id="absence">{t("absence")}</h2>
        <Boundary>{mayRead ? <Absence /> : <Forbidden right="holds:read" />}</Boundary>
      </section>
    </main>
  );
}
