/** What a person has chosen: read from the server at the start, applied at once, saved there. */
import { queryOptions, useMutation, useQueryClient, useSuspenseQuery } from "@tanstack/react-query";
import { type Kept, type Preferences, getPreferences, putPreferences } from "@/services/settings";

const DEFAULTS: Preferences = { language: null, zone: null, theme: "system", shortcuts: true, reminders: true, outcomes: true };

export const preferencesQuery = queryOptions({
  queryKey: ["preferences"],
  // The page works without them.
  queryFn: (): Promise<Kept> => getPreferences().catch(() => ({ chosen: DEFAULTS, version: "" })),
  staleTime: 300_000,
});

export function usePreferences(): Preferences {
  return useSuspenseQuery(preferencesQuery).data.chosen;
}

/** Shown at once. Saved on top of what is kept: what was chosen elsewhere meanwhile stays. */
export function useChangePreferences() {
  const client = useQueryClient();
  const show = (change: Partial<Preferences>) =>
    client.setQueryData(preferencesQuery.queryKey, (now) => now && { ...now, chosen: { ...now.chosen, ...change } });
  return useMutation({
    mutationKey: preferencesQuery.queryKey,
    mutationFn: async (change: Partial<Preferences>) => {
      const { chosen, version } = await getPreferences();
      return putPreferences({ chosen: { ...chosen, ...change }, version });
    },
    scope: { id: "preferences" },
    onMutate: (change) => {
      const before = client.getQueryData(preferencesQuery.queryKey)?.chosen ?? DEFAULTS;
      show(change);
      return Object.fromEntries(Object.keys(change).map((name) => [name, before[name as keyof Preferences]]));
    },
    // While later choices wait to be saved, they stay shown.
    onSuccess: (saved) => {
      if (client.isMutating({ mutationKey: preferencesQuery.queryKey }) === 1) client.setQueryData(preferencesQuery.queryKey, saved);
    },
    onError: (_error, _change, before) => before && show(before),
  });
}
