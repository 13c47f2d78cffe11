/** The areas by rights, search, the connection and the account. */
import { Link, useNavigate, useRouterState } from "@tanstack/react-router";
import { Suspense, lazy } from "react";
import { Icon } from "@/components/Icon";
import { shell } from "@/locales/en/shell";
import { textOf } from "@/locales/text";
import { useChangedRuns, useLiveState } from "@/live/useLive";
import { addressOf } from "@/services/client";
import { AREAS } from "./areas";
import { signedOut } from "./flag";
import { Keys } from "./Keys";
import { LiveRunSummary, LiveSummary } from "./LiveSummary";
import { OpenCount } from "./OpenCount";
import { focusPart } from "./parts";
import { PALETTE_KEYS, useKeys } from "./useKeys";
import { useSession } from "./useSession";

const t = textOf(shell);
// The kit's menu is not needed for the first paint.
const AccountMenu = lazy(() => import("./AccountMenu"));
const TenantMenu = lazy(() => import("./TenantMenu"));

export function Header({ onKeys, onFind }: { onKeys: () => void; onFind: () => void }) {
  const session = useSession();
  const navigate = useNavigate();
  const isRuns = useRouterState({ select: (state) => state.location.pathname === "/runs" });
  const areas = AREAS.filter((area) => area.rights.some((right) => session.rights.has(right)));
  useKeys([
    ...areas.map((area) => ({
      keys: area.keys,
      group: t("main"),
      label: t(area.label),
      run: () => void navigate({ to: area.to }),
    })),
    { keys: PALETTE_KEYS, group: t("main"), label: t("find"), run: onFind, whileTyping: true },
    { keys: "F6", group: t("main"), label: t("nextPart"), run: () => focusPart(1), whileTyping: true },
    { keys: "Shift+F6", group: t("main"), label: t("lastPart"), run: () => focusPart(-1), whileTyping: true },
    { keys: "?", group: t("main"), label: t("keys"), run: onKeys },
  ]);
  return (
    <header className="bar" data-part="bar">
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
      <button type="button" className="button quiet find" onClick={onFind}>
        <Icon name="search" />
        <span className="find-word">{t("find")}</span>
        <span className="find-keys" aria-hidden="true">
          <Keys keys={PALETTE_KEYS} />
        </span>
      </button>
      {session.tenants.length > 1 ? (
        <Suspense fallback={<span className="button quiet account">{session.tenant}</span>}>
          <TenantMenu />
        </Suspense>
      ) : null}
      {session.rights.has("holds:read") ? <LiveMark /> : session.rights.has("runs:read") ? <RunsMark /> : null}
      {session.rights.has("holds:read") ? <LiveSummary /> : null}
      {isRuns && session.rights.has("runs:read") ? <LiveRunSummary /> : null}
      <Suspense fallback={<span className="button quiet account">{session.person}</span>}>
        <AccountMenu onKeys={onKeys} />
      </Suspense>
    </header>
  );
}

/** Without the right to read holds nothing opens the connection on most pages. */
function RunsMark() {
  useChangedRuns(() => {});
  return <LiveMark />;
}

function LiveMark() {
  const state = useLiveState();
  // Another request may learn it before the connection does.
  const shown = signedOut.use() ? "ended" : state;
  return (
    <output className={`live live-${shown}`}>
      <span className="live-dot" aria-hidden="true" />
      {t(shown)}
    </output>
  );
}
