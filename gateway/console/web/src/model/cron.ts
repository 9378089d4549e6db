/** A cron expression in plain words. Bounded: fields that would need too many words are quoted as they are. Pure. */

const MONTHS = ["January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"];
const DAYS = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
const NICKNAMES: Record<string, string> = {
  "@hourly": "0 * * * *",
  "@daily": "0 0 * * *",
  "@midnight": "0 0 * * *",
  "@weekly": "0 0 * * 0",
  "@monthly": "0 0 1 * *",
  "@yearly": "0 0 1 1 *",
  "@annually": "0 0 1 1 *",
};
const LENGTH_MAX = 200;
const NAMES_MAX = 12;

const two = (value: string): string => value.padStart(2, "0");
const isNumber = (field: string): boolean => /^\d{1,2}$/.test(field);

function listed(names: readonly string[]): string {
  return names.length < 2 ? names.join("") : `${names.slice(0, -1).join(", ")} and ${names[names.length - 1]}`;
}

function ordinal(value: number): string {
  const end = value % 100 >= 11 && value % 100 <= 13 ? "th" : (["th", "st", "nd", "rd"][value % 10] ?? "th");
  return `${value}${end}`;
}

function named(field: string, names: readonly string[], first: number): string | null {
  const one = (text: string): string | null => {
    const number = isNumber(text)
      ? Number(text)
      : names.findIndex((name) => name.slice(0, 3).toLowerCase() === text.toLowerCase()) + first;
    return names[(number - first) % names.length] ?? null;
  };
  const parts = field.split(",");
  if (parts.length > NAMES_MAX) return null;
  const words = parts.map((part) => {
    const [from, to, ...more] = part.split("-");
    if (more.length > 0 || from === undefined) return null;
    const [begin, end] = [one(from), to === undefined ? undefined : one(to)];
    if (begin === null || end === null) return null;
    return end === undefined ? begin : `${begin} to ${end}`;
  });
  return words.includes(null) ? null : listed(words as string[]);
}

function step(field: string): number | null {
  const found = /^(?:\*|0)\/(\d{1,2})$/.exec(field);
  return found && Number(found[1]) > 0 ? Number(found[1]) : null;
}

function timeOfDay(minute: string, hour: string): string | null {
  const everyMinutes = step(minute);
  const everyHours = step(hour);
  const hours = /^(\d{1,2})-(\d{1,2})$/.exec(hour);
  if (isNumber(minute)) {
    const hourList = hour.split(",");
    if (hourList.length <= NAMES_MAX && hourList.every(isNumber)) {
      return `at ${listed(hourList.map((one) => `${two(one)}:${two(minute)}`))}`;
    }
    const when = Number(minute) === 0 ? "on the hour" : `${Number(minute)} min past the hour`;
    if (hour === "*") return `every hour, ${when}`;
    if (everyHours !== null) return everyHours === 1 ? `every hour, ${when}` : `every ${everyHours} hours, ${when}`;
    if (hours) return `every hour from ${two(hours[1]!)}:${two(minute)} to ${two(hours[2]!)}:${two(minute)}`;
    return null;
  }
  const often = minute === "*" || everyMinutes === 1 ? "every minute" : everyMinutes ? `every ${everyMinutes} minutes` : null;
  if (often === null) return null;
  if (hour === "*") return often;
  if (isNumber(hour)) return `${often} from ${two(hour)}:00 to ${two(hour)}:59`;
  return hours ? `${often} from ${two(hours[1]!)}:00 to ${two(hours[2]!)}:59` : null;
}

/** `0 9 * * 1-5` → `at 09:00, Monday to Friday`. What it cannot say it shows as it is. */
export function describeCron(cron: string): string {
  const text = (NICKNAMES[cron.trim()] ?? cron).trim();
  if (text.length > LENGTH_MAX) return cron.slice(0, LENGTH_MAX);
  let fields = text.split(/\s+/);
  if (fields.length === 6 && fields[0] === "0") fields = fields.slice(1);
  const [minute, hour, day, month, weekday] = fields;
  if (fields.length !== 5 || !minute || !hour || !day || !month || !weekday) return cron;
  const time = timeOfDay(minute, hour);
  const months = month === "*" ? "" : named(month, MONTHS, 1);
  const weekdays = weekday === "*" || weekday === "?" ? "" : named(weekday, DAYS, 0);
  const dayList = day === "*" || day === "?" ? [] : day.split(",");
  if (time === null || months === null || weekdays === null) return cron;
  if (dayList.length > NAMES_MAX || !dayList.every((one) => isNumber(one) || one === "L")) return cron;
  const days = listed(dayList.map((one) => (one === "L" ? "the last day" : `the ${ordinal(Number(one))}`)));
  const when = [days && `on ${days} of the month`, weekdays].filter(Boolean).join(" or ");
  const isDaily = !when && time.startsWith("at ");
  return `${isDaily ? "every day " : ""}${time}${when ? `, ${when}` : ""}${months ? `, in ${months}` : ""}`;
}
