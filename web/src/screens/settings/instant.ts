/** What a field for a local time says, as an instant; empty: none. */
export function instantOf(local: string): string | null {
  const found = new Date(local);
  return Number.isNaN(found.getTime()) ? null : found.toISOString();
}
