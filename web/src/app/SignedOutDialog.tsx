import { Dialog } from "@/components/Dialog";
import { shell } from "@/locales/en/shell";
import { textOf } from "@/locales/text";
import { signInAddress } from "@/services/session";

const t = textOf(shell);

export default function SignedOutDialog({ isOther }: { isOther: boolean }) {
  if (isOther) {
    return (
      <Dialog title={t("otherPersonTitle")}>
        <p>{t("otherPersonText")}</p>
        <button type="button" className="button primary" onClick={() => window.location.reload()}>
          {t("reload")}
        </button>
      </Dialog>
    );
  }
  return (
    <Dialog title={t("signedOutTitle")}>
      <p>{t("signedOutText")}</p>
      <a className="button primary" href={signInAddress()}>
        {t("signIn")}
      </a>
    </Dialog>
  );
}
