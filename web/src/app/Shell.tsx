/** Header, bars, the place of the screen, and the dialogs that lie over every page. */
import { Outlet, useRouterState } from "@tanstack/react-router";
import { Suspense, lazy, useCallback, useContext, useEffect, useState } from "react";
import { Boundary } from "@/components/Boundary";
import { Skeleton } from "@/components/Skeleton";
import { renewTimes } from "@/components/useNow";
import { useSaidTitle } from "@/components/useTitle";
import { shell } from "@/locales/en/shell";
import { textOf } from "@/locales/text";
import { setFormats } from "@/models/time";
import { OfflineBar, ReleaseBar } from "./Bars";
import { otherPerson, signedOut } from "./flag";
import { Header } from "./Header";
import { focusWork } from "./parts";
import { PausedBar } from "./PausedBar";
import { ThemeChoice } from "./ThemeChoice";
import { useKeyboard, useLetters } from "./useKeys";
import { usePreferences } from "./usePreferences";

const t = textOf(shell);
// What the first paint does not need is loaded after it.
const KeyList = lazy(() => import("./KeyList"));
const Palette = lazy(() => import("./Palette"));
const SignedOutDialog = lazy(() => import("./SignedOutDialog"));

export function Shell() {
  useKeyboard();
  const [shown, show] = useState<"keys" | "palette" | null>(null);
  const close = () => show(null);
  const hasEnded = signedOut.use();
  const isOther = otherPerson.use();
  useApplied();
  const path = useRouterState({ select: (state) => state.location.pathname });
  return (
    <>
      <a className="skip" href="#main" onClick={focusMain}>
        {t("skip")}
      </a>
      <a className="skip-work" href="#main" onClick={(event) => { event.preventDefault(); focusWork(); }}>
        {t("skipWork")}
      </a>
      <Header onKeys={useCallback(() => show("keys"), [])} onFind={useCallback(() => show("palette"), [])} />
      <SaidTitle />
      <OfflineBar />
      <ReleaseBar />
      <PausedBar />
      <Boundary resetKey={path}>
        <Suspense fallback={<Skeleton />}>
          <Outlet />
        </Suspense>
      </Boundary>
      <Suspense fallback={null}>
        {shown === "keys" ? <KeyList onClose={close} /> : null}
        {shown === "palette" ? <Palette onClose={close} /> : null}
        {hasEnded || isOther ? <SignedOutDialog isOther={isOther} /> : null}
      </Suspense>
    </>
  );
}

function SaidTitle() {
  return <output className="away" data-title="">{useSaidTitle()}</output>;
}

/** Applies what the person chose. */
function useApplied(): void {
  const { theme, zone, language, shortcuts } = usePreferences();
  const setTheme = useContext(ThemeChoice);
  useEffect(() => setTheme(theme), [theme, setTheme]);
  useLetters(shortcuts);
  setFormats(zone, language);
  // Times that are shown already are written again.
  useEffect(renewTimes, [zone, language]);
}

/** By script: an address with # would be another address of the app. */
function focusMain(event: React.MouseEvent): void {
  event.preventDefault();
  document.getElementById("main")?.focus();
}
