/** The tenant that is shown, and the others of this person. Loaded only for people who have several. */
import { Menu } from "@mantine/core";
import { Problem } from "@/components/Problem";
import { useAction } from "@/components/useAction";
import { shell } from "@/locales/en/shell";
import { textOf } from "@/locales/text";
import { switchTenant } from "@/services/session";
import { queryClient } from "./query";
import { useSession } from "./useSession";

const t = textOf(shell);

export default function TenantMenu() {
  const { tenant, tenants } = useSession();
  const switching = useAction({ mutationFn: switchTenant, onSuccess: () => queryClient.clear() });
  return (
    <Menu position="bottom-end" transitionProps={{ duration: 0 }} width={220} withInitialFocusPlaceholder={false}>
      <Menu.Target>
        <button type="button" className="button quiet account" aria-label={t("tenant", { tenant })}>
          {tenant}
        </button>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Label>{t("switchTenant")}</Menu.Label>
        {tenants.map((each) => (
          <Menu.Item key={each} disabled={switching.isPending} aria-current={each === tenant ? "true" : undefined} onClick={() => (each === tenant ? undefined : switching.mutate(each))} rightSection={each === tenant ? "✓" : null}>
            {each}
          </Menu.Item>
        ))}
        {switching.isError ? <Problem error={switching.error} /> : null}
      </Menu.Dropdown>
    </Menu>
  );
}
