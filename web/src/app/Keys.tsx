import { shownKeys } from "@/models/keys";

const isMac = /mac|iphone|ipad/i.test(navigator.userAgent);

/** `g i` as two keys, one after the other. */
export function Keys({ keys }: { keys: string }) {
  return (
    <>
      {shownKeys(keys, isMac).map((key) => (
        <kbd key={key}>{key}</kbd>
      ))}
    </>
  );
}
