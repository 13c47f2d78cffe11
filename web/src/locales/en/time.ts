export const time = {
  milliseconds: "{count} ms",
  seconds: "{count} s",
  minutes: "{count} min",
  minutesSeconds: "{count} min {rest} s",
  hours: "{count} h",
  hoursMinutes: "{count} h {rest} min",
  days: "{count, plural, one {# day} other {# days}}",
  now: "now",
} as const;
