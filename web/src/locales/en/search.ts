export const search = {
  chips: "Filters",
  text: "text “{text}”",
  drop: "Remove {word}",
  wrongName: "“{word}”: {name} is not a name of a condition.",
  meant: "Search for {q}",
  wrongValue: "“{word}” is not known. Known: {known}.",
  wrongWord: "“{word}” cannot be read.",
  wrongCompared: "“{word}”: {name} cannot be compared. Write {name}:VALUE.",
  wrongSign: "“{word}” needs < or >. Write {name}<2d or {name}>2d.",
  wrongLength: "“{word}” has no length of time. Write {name}<2d, {name}<4h or {name}<30m.",
  wrongNone: "“{word}” matches none. From low to high: {known}.",
  wrongTwice: "“{word}” is given twice. Give it once.",
} as const;
