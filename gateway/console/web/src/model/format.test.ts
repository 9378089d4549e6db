import { expect, test } from "vitest";
import { ago, bytes, parseSpan, perSecond, short, span, utcTime } from "./format";
import { Exact, parseExact, rounded, stringify } from "./exact";
import { commandOf, curlOf, quoted } from "./shell";
import { windowOf } from "./window";

test("numbers are short where they are long", () => {
  expect([0, 999, 9_999, 12_399, 999_999, 1_250_000].map(short)).toEqual(["0", "999", "9,999", "12.3k", "999k", "1.2M"]);
  expect([0, 0.05, 0.5, 2.25, 1500].map(perSecond)).toEqual(["0", "3.0/min", "30/min", "2.3/s", "1,500/s"]);
  expect([10, 2_048, 5 * 2 ** 20].map(bytes)).toEqual(["10 B", "2.0 KiB", "5.0 MiB"]);
});

test("durations have their two largest units", () => {
  expect([-5, 20, 1_000, 61_000, 3_600_000, 3_750_000, 90_000_000].map(span)).toEqual(["0 ms", "20 ms", "1 s", "1 min 1 s", "1 h", "1 h 2 min", "1 d 1 h"]);
  expect([ago(1_000, 62_000), ago(62_000, 1_000), ago(5, 6)]).toEqual(["1 min ago", "in 1 min", "now"]);
  expect(utcTime("2026-01-31T10:00:00+01:00")).toBe("2026-01-31 09:00:00 UTC");
  expect(["90s", "1.5h", "2w", ""].map(parseSpan)).toEqual([90_000, 5_400_000, null, null]);
});

test("numbers that JavaScript would round stay as they were sent", () => {
  const text = '{"id":12345678901234567890,"n":1.5,"list":[9007199254740993]}';
  const value = parseExact(text) as { id: unknown };
  if (value.id instanceof Exact) expect(stringify(value, 0)).toBe(text);
  else expect(process.version < "v21").toBe(true); // node 20 gives a reviver no source
  expect(stringify({ id: new Exact("12345678901234567890"), empty: {}, list: [] }, 0)).toBe('{"id":12345678901234567890,"empty":{},"list":[]}');
  expect([rounded(new Exact("1763500000123456789")), rounded(5)]).toEqual([1763500000123456789, 5]);
  expect(JSON.parse(stringify({ a: [1, { b: "x" }] }))).toEqual({ a: [1, { b: "x" }] });
});

test("lines for a shell cannot run anything else", () => {
  expect(quoted("$(rm -rf /)")).toBe("'$(rm -rf /)'");
  expect(quoted("it's")).toBe(`'it'\\''s'`);
  const call = { method: "POST" as const, path: "/jobs/search", body: { q: "'; ls" } };
  expect(curlOf(call, "https://x/y/", true)).toBe(
    `curl -X POST https://x/y/api/v1/jobs/search -H "X-API-Key: $CORVO_API_KEY" -H 'content-type: application/json' -d '{"q":"'\\''; ls"}'`,
  );
  expect(commandOf("queues", "http://localhost:8080/")).toBe("corvo queues");
  expect(commandOf("queues", "https://x/y/")).toBe("corvo queues --server https://x/y");
});

test.each([
  [0, 800, 40, 10, [0, 10]],
  [200, 800, 40, 1_000, [0, 30]],
  [-40_000, 800, 40, 1_000_000, [985, 1035]],
  [-40_000_000, 800, 40, 100, [100, 100]],
])("rows near the window: %i %i %i %i", (top, height, row, count, expected) => {
  const [from, to] = windowOf(top, height, row, count);
  expect([from, to]).toEqual(expected);
});
