import { expect, test } from "vitest";
import { describeCron } from "./cron";

test.each([
  ["0 9 * * 1-5", "at 09:00, Monday to Friday"],
  ["@daily", "every day at 00:00"],
  ["*/15 * * * *", "every 15 minutes"],
  ["* * * * *", "every minute"],
  ["0 */6 * * *", "every 6 hours, on the hour"],
  ["30 6 1,15 * *", "at 06:30, on the 1st and the 15th of the month"],
  ["0 6 L * *", "at 06:00, on the last day of the month"],
  ["5 4 * * sun", "at 04:05, Sunday"],
  ["5 4 * * 7", "at 04:05, Sunday"],
  ["0 8,20 * 1,7 *", "every day at 08:00 and 20:00, in January and July"],
  ["*/5 9-17 * * mon-fri", "every 5 minutes from 09:00 to 17:59, Monday to Friday"],
  ["0 3 22 12 *", "at 03:00, on the 22nd of the month, in December"],
  ["0 9 1 * 1", "at 09:00, on the 1st of the month or Monday"],
])("%s is %s", (cron, words) => {
  expect(describeCron(cron)).toBe(words);
});

test.each(["1-59/7,3 * * * *", "not a cron", "", "0 0 * * mon#2", "*/0 * * * *", "99 99 99 99 99"])("what it cannot say it shows as it is: %s", (cron) => {
  expect(describeCron(cron).length).toBeLessThanOrEqual(200);
});

test("a hostile text stays small", () => {
  expect(describeCron("1,".repeat(100_000)).length).toBeLessThanOrEqual(200);
  expect(describeCron(`0 0 * * ${Array(150).fill("1").join("-")}`).length).toBeLessThanOrEqual(320);
});
