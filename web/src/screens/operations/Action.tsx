/** A button that acts only after a dialog has said what it does. */
import { useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useContext, useId, useRef, useState } from "react";
import { Dialog } from "@/components/Dialog";
import { Problem } from "@/components/Problem";
import { useAction } from "@/components/useAction";
import { useOffline } from "@/live/useLive";
import { Announce } from "./Announce";
import { t } from "./text";

type ActionProps = {
  label: string;
  /** Names the row for those who hear the button alone. */
  of: string;
  title: string;
  text: string;
  isDanger?: boolean;
  /** Asks for a reason, and passes it on. */
  asksReason?: boolean;
  act: (reason: string) => Promise<unknown>;
  done: string;
};

export function Action(props: ActionProps) {
  const [opened, setOpened] = useState(false);
  const isOffline = useOffline();
  const place = useRef<HTMLElement | null>(null);
  // What the action changed may have replaced its button: the focus goes to the row's next one, or to its heading.
  const focus = () =>
    requestAnimationFrame(() => {
      if (document.activeElement !== document.body && document.activeElement !== null) return;
      const row = place.current;
      const next = row?.isConnected ? row.querySelector<HTMLElement>("button, a") : document.querySelector<HTMLElement>("main h1");
      if (next instanceof HTMLHeadingElement) next.tabIndex = -1;
      next?.focus();
    });
  return (
    <>
      <button
        type="button"
        ref={(button) => {
          if (button !== null) place.current = button.closest("tr");
        }}
        className={`button compact ${props.isDanger ? "danger" : ""}`}
        aria-label={t("actionOf", { label: props.label, of: props.of })}
        disabled={isOffline}
        onClick={() => setOpened(true)}
      >
        {props.label}
      </button>
      {opened ? <Confirm {...props} onClose={() => setOpened(false)} onDone={focus} /> : null}
    </>
  );
}

function Confirm({ label, title, text, isDanger, asksReason, act, done, onClose, onDone }: ActionProps & { onClose: () => void; onDone: () => void }) {
  const client = useQueryClient();
  const say = useContext(Announce);
  const [reason, setReason] = useState("");
  const id = useId();
  const acting = useAction({
    mutationFn: () => act(reason.trim()),
    onSuccess: async () => {
      say(done);
      onClose();
      await client.invalidateQueries({ queryKey: ["operations"] });
      onDone();
    },
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    acting.mutate();
  };
  return (
    <Dialog title={title} onClose={onClose}>
      <form className="confirm" onSubmit={submit}>
        <p>{text}</p>
        {asksReason ? (
          <div className="field">
            <label htmlFor={id}>{t("reason")}</label>
            <input id={id} value={reason} required={isDanger} maxLength={500} data-autofocus onChange={(event) => setReason(event.target.value)} />
          </div>
        ) : null}
        {acting.isError ? <Problem error={acting.error} /> : null}
        <div className="confirm-buttons">
          <button type="button" className="button" onClick={onClose}>
            {t("back")}
          </button>
          <button type="submit" className={`button ${isDanger ? "danger" : "primary"}`} disabled={acting.isOff}>
            {label}
          </button>
        </div>
      </form>
    </Dialog>
  );
}
