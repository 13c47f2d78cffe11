import { Menu } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { Suspense, lazy, useContext, useState } from "react";
import { Live } from "@/live/useLive";
import { shell } from "@/locales/en/shell";
import { textOf } from "@/locales/text";
import { placedUntil, signOut } from "@/services/session";
import { serverNow } from "@/components/useNow";
import { useChangePreferences, usePreferences } from "./usePreferences";
import { useSession } from "./useSession";

const t = textOf(shell);
const SignOutDialog = lazy(() => import("./SignOutDialog"));

export default function AccountMenu({ onKeys }: { onKeys: () => void }) {
  const session = useSession();
  const live = useContext(Live);
  const { theme } = usePreferences();
  const saving = useChangePreferences();
  const themes = { system: t("themeAuto"), light: t("themeLight"), dark: t("themeDark") } as const;
  const [isAsked, setAsked] = useState(false);
  const leave = () => void signOut(() => live.stop());
  return (
    <>
    <Menu position="bottom-end" transitionProps={{ duration: 0 }} width={220} withInitialFocusPlaceholder={false}>
      <Menu.Target>
        <button type="button" className="button quiet account" aria-label={t("account", { person: session.person })}>
          {session.person}
        </button>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Item renderRoot={(props: object) => <Link to="/settings" {...props} />}>{t("settings")}</Menu.Item>
        <Menu.Item onClick={onKeys}>{t("keys")}</Menu.Item>
        <Menu.Divider />
        <Menu.Label>{t("theme")}</Menu.Label>
        {(Object.keys(themes) as (keyof typeof themes)[]).map((name) => (
          <Menu.Item key={name} onClick={() => saving.mutate({ theme: name })} aria-current={theme === name ? "true" : undefined} rightSection={theme === name ? "✓" : null}>
            {themes[name]}
          </Menu.Item>
        ))}
        {session.canSignOut ? (
          <>
            <Menu.Divider />
            <Menu.Item onClick={() => (placedUntil() > serverNow() ? setAsked(true) : leave())}>{t("signOut")}</Menu.Item>
          </>
        ) : null}
      </Menu.Dropdown>
    </Menu>
    {isAsked ? (
      <Suspense fallback={null}>
        <SignOutDialog onSignOut={leave} onClose={() => setAsked(false)} />
      </Suspense>
    ) : null}
    </>
  );
}
