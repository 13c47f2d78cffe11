import { MantineProvider, createTheme } from "@mantine/core";
import { QueryClientProvider } from "@tanstack/react-query";
import { RouterProvider } from "@tanstack/react-router";
import { Suspense, useEffect, useMemo } from "react";
import { Boundary } from "@/components/Boundary";
import { LiveConnection } from "@/live/connection";
import { Live } from "@/live/useLive";
import { ThemeChoice } from "./ThemeChoice";
import { styleNonce } from "./nonce";
import { queryClient } from "./query";
import { router } from "./router";
import { useTheme } from "./theme";
import { preferencesQuery } from "./usePreferences";
import { sessionQuery } from "./useSession";

const kit = createTheme({ fontFamily: "var(--font)", fontFamilyMonospace: "var(--mono)", focusRing: "auto", respectReducedMotion: true });

// Both at once, before anything asks for them.
void queryClient.prefetchQuery(sessionQuery);
void queryClient.prefetchQuery(preferencesQuery);

export function App() {
  const { scheme, setTheme } = useTheme();
  const live = useMemo(() => new LiveConnection(), []);
  useEffect(() => {
    live.start();
    return () => live.stop();
  }, [live]);
  return (
    <MantineProvider theme={kit} forceColorScheme={scheme} getStyleNonce={() => styleNonce} withGlobalClasses={false}>
      <ThemeChoice.Provider value={setTheme}>
        <QueryClientProvider client={queryClient}>
          <Live.Provider value={live}>
            <Boundary>
              <Suspense fallback={null}>
                <RouterProvider router={router} />
              </Suspense>
            </Boundary>
          </Live.Provider>
        </QueryClientProvider>
      </ThemeChoice.Provider>
    </MantineProvider>
  );
}
