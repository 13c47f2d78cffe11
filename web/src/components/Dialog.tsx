/** A dialog that gives the focus back to where it was. Load it apart: the kit's dialog is large. */
import { Modal } from "@mantine/core";
import { type ReactNode, useEffect, useRef } from "react";
import { shell } from "@/locales/en/shell";
import { textOf } from "@/locales/text";

const t = textOf(shell);

type DialogProps = { title: string; onClose?: () => void; size?: string; className?: string; children: ReactNode };

/** Without `onClose` it cannot be closed. */
export function Dialog({ title, onClose, size, className, children }: DialogProps) {
  const before = useRef(document.activeElement);
  useEffect(() => {
    const place = before.current;
    return () => {
      const isNowhere = document.activeElement === null || document.activeElement === document.body;
      if (isNowhere && place instanceof HTMLElement && place.isConnected) place.focus();
    };
  }, []);
  return (
    <Modal
      opened
      onClose={onClose ?? (() => {})}
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
