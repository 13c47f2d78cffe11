/** Says what an action has done, where screen readers hear it. */
import { createContext } from "react";

export const Announce = createContext<(text: string) => void>(() => {});
