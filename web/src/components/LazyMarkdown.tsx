/** Markdown whose parser is loaded apart: the text is readable at once, and formatted a little later. */
import { Suspense, lazy } from "react";
import { Text } from "./Value";

const Formatted = lazy(async () => ({ default: (await import("./Markdown")).Markdown }));

export function Markdown({ text }: { text: string }) {
  return (
    <Suspense fallback={<Text text={text} />}>
      <Formatted text={text} />
    </Suspense>
  );
}
