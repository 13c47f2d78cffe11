/** A size in bytes: `512 B`, `12 KiB`, `1.5 MiB`. */
export function sizeText(bytes: number): string {
  if (bytes < 1024) return `${bytes} B`;
  if (bytes < 1024 * 1024) return `${Math.round(bytes / 1024)} KiB`;
  return `${Math.round((bytes / 1024 / 1024) * 10) / 10} MiB`;
}

/** Of a text, as UTF-8. */
export function bytesOf(text: string): number {
  return new TextEncoder().encode(text).length;
}
