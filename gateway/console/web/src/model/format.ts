/** Numbers, durations and moments as people read them. Pure. */

const WHOLE = new Intl.NumberFormat("en-US");
const UNITS: readonly (readonly [string, number])[] = [
  ["d", 86_400_000],
  ["h", 3_600_000],
  ["min", 60_000],
  ["s", 1_000],
];

export const whole = (value: number): string => WHOLE.format(value);

/** 12,345 → 12.3k. */
export function short(value: number): string {
  if (Math.abs(value) < 10_000) return whole(Math.round(value));
  const [divided, unit] = value >= 1e9 ? [value / 1e9, "G"] : value >= 1e6 ? [value / 1e6, "M"] : [value / 1e3, "k"];
  return `${divided >= 100 ? Math.floor(divided) : Math.floor(divided * 10) / 10}${unit}`;
}

export function perSecond(rate: number): string {
  if (rate === 0) return "0";
  if (rate < 1) return `${(rate * 60).toFixed(rate * 60 < 10 ? 1 : 0)}/min`;
  return `${rate < 10 ? rate.toFixed(1) : short(rate)}/s`;
}

/** The two largest units: 3,750,000 ms → 1 h 2 min. */
export function span(ms: number): string {
  if (ms < 1_000) return `${Math.max(0, Math.round(ms))} ms`;
  const parts: string[] = [];
  let left = ms;
  for (const [unit, size] of UNITS) {
    const count = Math.floor(left / size);
    if (count > 0 || parts.length > 0) {
      if (count > 0) parts.push(`${count} ${unit}`);
      if (parts.length === 2 || count === 0) break;
      left -= count * size;
    }
  }
  return parts.join(" ");
}

/** One unit, for tables. */
export function ago(at: string | number, now: number): string {
  const moment = typeof at === "number" ? at : Date.parse(at);
  const distance = Math.abs(now - moment);
  if (distance < 1_000) return "now";
  const [unit, size] = UNITS.find(([, one]) => distance >= one) ?? ["s", 1_000];
  const text = `${Math.floor(distance / size)} ${unit}`;
  return moment > now ? `in ${text}` : `${text} ago`;
}

export function localTime(at: string | number, zone?: string): string {
  const format = new Intl.DateTimeFormat("en-GB", {
    dateStyle: "medium",
    timeStyle: "medium",
    ...(zone ? { timeZone: zone } : {}),
  });
  return format.format(new Date(at));
}

export const utcTime = (at: string | number): string => `${new Date(at).toISOString().replace("T", " ").slice(0, 19)} UTC`;

export function bytes(size: number): string {
  if (size < 1024) return `${size} B`;
  const [divided, unit] =
    size >= 2 ** 30 ? [size / 2 ** 30, "GiB"] : size >= 2 ** 20 ? [size / 2 ** 20, "MiB"] : [size / 1024, "KiB"];
  return `${divided.toFixed(divided < 10 ? 1 : 0)} ${unit}`;
}

export const percent = (part: number, all: number): string => (all === 0 ? "–" : `${Math.round((100 * part) / all)} %`);

const SPAN = /^(\d+(?:\.\d+)?)(ms|s|m|h|d)$/;
const SPAN_MS: Record<string, number> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** `90s` → milliseconds; null for other text. */
export function parseSpan(text: string): number | null {
  const found = SPAN.exec(text);
  return found ? Number(found[1]) * (SPAN_MS[found[2]!] ?? 0) : null;
}
