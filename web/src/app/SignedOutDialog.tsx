import { Modal } from "@mantine/core";
import { shell } from "@/locales/en/shell";
import { textOf } from "@/locales/text";
import { signInAddress } from "@/services/session";

const t = textOf(shell);

export default function SignedOutDialog() {
  return (
    <Modal
      opened
      onClose={() => {}}
      withCloseButton={false}
      title={t("signedOutTitle")}
      transitionProps={{ duration: 0 }}
    >
      <p>{t("signedOutText")}</p>
      <a className="button primary" href={signInAddress()}>
        {t("signIn")}
      </a>
    </Modal>
  );
}
