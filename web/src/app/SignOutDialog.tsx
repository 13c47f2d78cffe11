/** A decision that can still be undone is undone by signing out: the person chooses to wait or to undo it. */
import { useEffect, useEffectEvent, useState } from "react";
import { Dialog } from "@/components/Dialog";
import { serverNow } from "@/components/useNow";
import { shell } from "@/locales/en/shell";
import { textOf } from "@/locales/text";
import { placedUntil } from "@/services/session";

const t = textOf(shell);

export default function SignOutDialog({ onSignOut, onClose }: { onSignOut: () => void; onClose: () => void }) {
  const [left, setLeft] = useState(secondsLeft);
  const [waits, setWaits] = useState(false);
  const renew = useEffectEvent(() => {
    const now = secondsLeft();
    setLeft(now);
    if (now > 0) return;
    // What the person read here is over, whatever they chose.
    if (waits) onSignOut();
    else onClose();
  });
  useEffect(() => {
    const timer = setInterval(() => renew(), 250);
    return () => clearInterval(timer);
  }, []);
  return (
    <Dialog title={t("notFinalTitle")} onClose={onClose}>
      <p>{waits ? t("signOutWaits", { seconds: left }) : t("notFinalText", { seconds: left })}</p>
      <div className="dialog-buttons">
        <button type="button" className="button" onClick={onSignOut}>{t("signOutUndo")}</button>
        <button type="button" className="button primary" data-autofocus disabled={waits} onClick={() => setWaits(true)}>{t("signOutLater")}</button>
      </div>
    </Dialog>
  );
}

function secondsLeft(): number {
  return Math.ceil((placedUntil() - serverNow()) / 1000);
}
