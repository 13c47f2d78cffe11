/** The decisions, in the author's order, pinned to the bottom. */
import { useEffect, useEffectEvent, useRef } from "react";
import { Moment } from "@/components/Moment";
import { useKeepFocus } from "@/components/useKeepFocus";
import { clock } from "@/models/time";
import type { Option } from "@/services/holds";
import { Keys } from "@/app/Keys";
import { t } from "./text";
import type { DraftState } from "./useDraft";

type BarProps = {
  options: Option[];
  armed: string | null;
  /** The option whose comment is asked for, also while the hold has changed since it was armed. */
  leant: string | null;
  comment: string;
  commentError: string;
  disabled: boolean;
  saved: DraftState;
  onComment: (text: string) => void;
  onChoose: (option: Option) => void;
  onConfirm: (option: Option) => void;
  onDisarm: () => void;
  onPress: () => void;
};

export function DecisionBar(props: BarProps) {
  const { options, armed, leant, comment, commentError, disabled, saved } = props;
  const chosen = options.find((each) => each.id === armed);
  const meant = options.find((each) => each.id === leant);
  const bar = useHeight();
  const isPressed = useRef(false);
  const keep = useKeepFocus(() => bar.current?.querySelector<HTMLElement>(".decision-row button"));
  const isArmed = chosen !== undefined;
  // The button that was pressed is gone: what comes next has the focus, and no letter is a key of the page.
  const follow = useEffectEvent(() => {
    const next = chosen?.requiresComment ? "#decision-comment" : ".decision-row button";
    if (isPressed.current && document.activeElement === document.body) bar.current?.querySelector<HTMLElement>(next)?.focus();
    isPressed.current = false;
  });
  useEffect(() => {
    if (isArmed || isPressed.current) follow();
  }, [isArmed]);
  return (
    <div className="decisions" ref={bar}>
      {comment || meant?.requiresComment || meant?.variant === "danger" ? (
        <div className="field" data-field="comment">
          <label className="field-label" htmlFor="decision-comment">
            {t("comment")}
            {meant?.requiresComment ? <span className="muted small"> {t("required")}</span> : null}
          </label>
          <textarea
            id="decision-comment"
            rows={2}
            value={comment}
            aria-invalid={commentError ? true : undefined}
            aria-describedby={commentError ? "decision-comment-error" : undefined}
            onChange={(event) => props.onComment(event.target.value)}
          />
          {commentError ? <p id="decision-comment-error" className="field-error small">{commentError}</p> : null}
        </div>
      ) : null}
      {/* oxlint-disable-next-line jsx-a11y/no-static-element-interactions, jsx-a11y/click-events-have-key-events -- it only notes when one of its buttons was pressed */}
      <div
        className="decision-row"
        {...keep}
        onClickCapture={() => {
          isPressed.current = true;
          props.onPress();
        }}
      >
        {chosen ? (
          <>
            <button type="button" className={`button ${chosen.variant === "danger" ? "danger" : "primary"}`} disabled={disabled} onClick={() => props.onConfirm(chosen)}>
              {t("confirm", { label: labelOf(chosen) })}
              <span aria-hidden="true">{chosen.requiresComment ? <Keys keys="Mod+Enter" /> : <kbd>{"↵"}</kbd>}</span>
            </button>
            <button type="button" className="button" onClick={props.onDisarm}>
              {t("cancel")}
              <kbd aria-hidden="true">{"Esc"}</kbd>
            </button>
          </>
        ) : (
          options.map((option, place) => (
            <button key={option.id} type="button" className={`button ${variantOf(option)}`} disabled={disabled} onClick={() => props.onChoose(option)}>
              {place < 9 ? <kbd aria-hidden="true">{place + 1}</kbd> : null}
              {labelOf(option)}
            </button>
          ))
        )}
        <SavedMark saved={saved} />
      </div>
      <output className="away">{chosen ? t("armed", { label: labelOf(chosen), isTyped: String(chosen.requiresComment) }) : ""}</output>
    </div>
  );
}

/** Its height, for the room that focused fields keep below them. */
function useHeight(): React.RefObject<HTMLDivElement | null> {
  const bar = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (bar.current === null) return undefined;
    const root = document.documentElement;
    const seen = new ResizeObserver(([entry]) => root.style.setProperty("--decisions", `${entry?.borderBoxSize[0]?.blockSize ?? 0}px`));
    seen.observe(bar.current);
    return () => {
      seen.disconnect();
      root.style.removeProperty("--decisions");
    };
  }, []);
  return bar;
}

function labelOf(option: Option): string {
  return option.label || t("submit");
}

function variantOf(option: Option): string {
  return option.variant === "primary" || option.variant === "danger" ? option.variant : "";
}

function SavedMark({ saved }: { saved: DraftState }) {
  if (saved.kind === "none") return null;
  if (saved.kind === "failed") return <span className="saved late small">{t("draftFailed")}</span>;
  const at = new Date(saved.at);
  const time = clock(at);
  return (
    <span className="saved muted small">
      <Moment at={at.toISOString()} text={t("draftSaved", { time })} />
    </span>
  );
}
