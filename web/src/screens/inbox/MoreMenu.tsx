/** The menu of further actions. Loaded apart: the kit that floats it is larger than the inbox itself. */
import { Menu } from "@mantine/core";
import type { BoundKey } from "@/app/useKeys";
import { t } from "./text";

export default function MoreMenu({ actions }: { actions: BoundKey[] }) {
  return (
    <Menu position="bottom-end" transitionProps={{ duration: 0 }} width={220} withInitialFocusPlaceholder={false}>
      <Menu.Target>
        <button type="button" className="button quiet">{t("more")}</button>
      </Menu.Target>
      <Menu.Dropdown>
        {actions.map((each) => (
          <Menu.Item key={each.keys} onClick={each.run} rightSection={<kbd aria-hidden="true">{each.keys}</kbd>}>{each.label}</Menu.Item>
        ))}
      </Menu.Dropdown>
    </Menu>
  );
}
