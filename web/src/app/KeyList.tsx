import { Modal } from "@mantine/core";
import { shell } from "@/locales/en/shell";
import { textOf } from "@/locales/text";
import { useBoundKeys } from "./useKeys";

const t = textOf(shell);

export default function KeyList({ onClose }: { onClose: () => void }) {
  const keys = useBoundKeys();
  const groups = [...new Set(keys.map((each) => each.group))];
  return (
    <Modal
      opened
      onClose={onClose}
      title={t("keysTitle")}
      closeButtonProps={{ "aria-label": t("close") }}
      transitionProps={{ duration: 0 }}
    >
      {groups.map((group) => (
        <section key={group}>
          <h3 className="group-title">{group}</h3>
          <dl className="keys">
            {keys
              .filter((each) => each.group === group)
              .map((each) => (
                <div key={each.keys}>
                  <dt>{each.label}</dt>
                  <dd>
                    {each.keys.split(" ").map((key) => (
                      <kbd key={key}>{key}</kbd>
                    ))}
                  </dd>
                </div>
              ))}
          </dl>
        </section>
      ))}
    </Modal>
  );
}
