/** A dialog that gives the focus back to where it was. Load it apart: the kit's dialog is large. */
import { Modal } from "@mantine/core";
import type { ReactNode } from "react";
import { shell } from "@/locales/en/shell";
import { textOf } from "@/locales/text";
import { useFocusBack } from "./useFocusBack";

const t = textOf(shell);

type DialogProps = { title: string; onClose?: () => void; size?: string; className?: string; isKept?: boolean; children: ReactNode };

/** Without `onClose` it cannot be closed; `isKept`: not by a click beside it. */
export function Dialog({ title, onClose, size, className, isKept = false, children }: DialogProps) {
  useFocusBack();
  return (
    <Modal
      opened
      onClose={onClose ?? (() => {})}
      closeOnClickOutside={!isKept}
      withCloseButton={onClose !== undefined}
      closeButtonProps={{ "aria-label": t("close") }}
      title={title}
      size={size}
      className={className}
      transitionProps={{ duration: 0 }}
    >
      {children}
    </Modal>
  );
}
