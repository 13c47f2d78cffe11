/** Header, areas by rights, connection, and the place of the screen. */
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Link, Outlet, useNavigate, useRouterState } from "@tanstack/react-router";
import { Suspense, lazy, useCallback, useEffect, useState } from "react";
import { Boundary } from "@/components/Boundary";
import { Skeleton } from "@/components/Skeleton";
import { shell } from "@/locales/en/shell";
import { textOf } from "@/locales/text";
import { useHoldChanges, useLiveState } from "@/live/useLive";
import { addressOf } from "@/services/client";
import { countOpen } from "@/services/holds";
import type { Right } from "@/services/session";
import { newRelease, signedOut } from "./flag";
import { useKeyboard, useKeys } from "./useKeys";
import { useSession } from "./useSession";

const t = textOf(shell);
// What the first paint does not need is loaded after it.
const AccountMenu = lazy(() => import("./AccountMenu"));
const KeyList = lazy(() => import("./KeyList"));
const SignedOutDialog = lazy(() => import("./SignedOutDialog"));

type Area = { to: "/inbox" | "/runs" | "/flows" | "/operations"; label: keyof typeof shell; right: Right; keys: string };

const AREAS: readonly Area[] = [
  { to: "/inbox", label: "inbox", right: "holds:read", keys: "g i" },
  { to: "/runs", label: "runs", right: "runs:read", keys: "g r" },
  { to: "/flows", label: "flows", right: "flows:read", keys: "g f" },
  { to: "/operations", label: "operations", right: "admin:manage", keys: "g o" },
];

export function Shell() {
  useKeyboard();
  const [keysShown, showKeys] = useState(false);
  const hasEnded = signedOut.use();
  const path = useRouterState({ select: (state) => state.location.pathname });
  return (
    <>
      <a className="skip" href="#main" onClick={focusMain}>
        {t("skip")}
      </a>
      <Header onKeys={useCallback(() => showKeys(true), [])} />
      <OfflineBar />
      <ReleaseBar />
      <Boundary resetKey={path}>
        <Suspense fallback={<Skeleton />}>
          <Outlet />
        </Suspense>
      </Boundary>
      <Suspense fallback={null}>
        {keysShown ? <KeyList onClose={() => showKeys(false)} /> : null}
        {hasEnded ? <SignedOutDialog /> : null}
      </Suspense>
    </>
  );
}

/** By script: an address with # would be another address of the app. */
function focusMain(event: React.MouseEvent): void {
  event.preventDefault();
  document.getElementById("main")?.focus();
}

function Header({ onKeys }: { onKeys: () => void }) {
  const session = useSession();
  const navigate = useNavigate();
  const areas = AREAS.filter((area) => session.rights.has(area.right));
  useKeys([
    ...areas.map((area) => ({
      keys: area.keys,
      group: t("main"),
      label: t(area.label),
      run: () => void navigate({ to: area.to }),
    })),
    { keys: "?", group: t("main"), label: t("keys"), run: onKeys },
  ]);
  return (
    <header className="bar">
      <Link to="/" className="brand">
        <img src={addressOf("/static/mark.svg")} alt="" width="22" height="22" />
        <span>{"Holdfast"}</span>
      </Link>
      <nav aria-label={t("main")}>
        {areas.map((area) => (
          <Link key={area.to} to={area.to} className="area">
            {t(area.label)}
            {area.to === "/inbox" ? <OpenCount /> : null}
          </Link>
        ))}
      </nav>
      <LiveMark />
      <Suspense fallback={<span className="account muted">{session.person}</span>}>
        <AccountMenu onKeys={onKeys} />
      </Suspense>
    </header>
  );
}

function OpenCount() {
  const { data } = useQuery({ queryKey: ["holds", "count", "mine"], queryFn: () => countOpen("mine") });
  const count = data ?? 0;
  const queries = useQueryClient();
  // On every page: the count follows the holds, and the connection that it opens shows whether the page is live.
  useHoldChanges(() => void queries.invalidateQueries({ queryKey: ["holds", "count"] }));
  useEffect(() => {
    document.title = count > 0 ? `(${count}) Holdfast` : "Holdfast";
  }, [count]);
  if (count === 0) return null;
  return (
    <span className="count">
      <span aria-hidden="true">{count}</span>
      <span className="away">{t("openCount", { count })}</span>
    </span>
  );
}

function LiveMark() {
  const state = useLiveState();
  return (
    <output className={`live live-${state}`}>
      <span className="live-dot" aria-hidden="true" />
      {t(state)}
    </output>
  );
}

function OfflineBar() {
  const state = useLiveState();
  return state === "offline" ? (
    <p className="offline-bar" role="alert">
      {t("offlineBar")}
    </p>
  ) : null;
}

function ReleaseBar() {
  return newRelease.use() ? (
    <p className="offline-bar" role="alert">
      {t("newVersion")}{" "}
      <button type="button" className="button" onClick={() => window.location.reload()}>
        {t("reload")}
      </button>
    </p>
  ) : null;
}
