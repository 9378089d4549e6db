import { expect, test } from "vitest";
import { BadFilter, formatTerms, parseTerms, toFilter, toFlags, toggled } from "./filter";

const NOW = Date.parse("2026-01-31T12:00:00Z");
const filter = (text: string) => toFilter(parseTerms(text), NOW);

test("a text is the body of a search", () => {
  expect(filter('state:dead state:held queue:a/b tag:tenant=acme tag:n:=1 payload_jq:".amount > 100" attempt_min:2 has_errors:true')).toEqual({
    state: ["dead", "held"],
    queue: "a/b",
    tags: { tenant: "acme", n: 1 },
    payload_jq: ".amount > 100",
    attempt_min: 2,
    has_errors: true,
  });
});

test("a word alone, and a name that is none, are looked for in payloads", () => {
  expect(filter("ada@example.org")).toEqual({ payload_contains: "ada@example.org" });
  expect(filter("http://x")).toEqual({ payload_contains: "http://x" });
});

test("a span is a time before now", () => {
  expect(filter("created_after:1h")).toEqual({ created_after: "2026-01-31T11:00:00.000Z" });
  expect(filter("created_after:2026-01-31")).toEqual({ created_after: "2026-01-31" });
});

test.each(["state:lost", "attempt_min:x", "has_errors:maybe", "created_after:soon", "tag:x", "tag:x:=y", 'queue:""', "sort:id"])("%s is refused with a reason", (text) => {
  expect(() => filter(text)).toThrow(BadFilter);
});

test("written and read again it is the same, quotes included", () => {
  const terms = [
    { name: "payload_contains", value: 'a "b" \\ c' },
    { name: "state", value: "dead" },
    { name: "error_contains", value: "" },
  ];
  expect(parseTerms(formatTerms(terms))).toEqual(terms);
});

test("as flags of the command line, quoted for a shell", () => {
  expect(toFlags(parseTerms(`state:dead error_contains:"it's" has_errors:false`))).toBe(`--state dead --error-contains 'it'\\''s' --no-errors`);
});

test("a state is added to the others, a queue replaces the one before", () => {
  const terms = parseTerms("state:dead queue:a");
  expect(formatTerms(toggled(terms, { name: "state", value: "held" }))).toBe("state:dead queue:a state:held");
  expect(formatTerms(toggled(terms, { name: "queue", value: "b" }))).toBe("state:dead queue:b");
  expect(formatTerms(toggled(terms, { name: "state", value: "dead" }))).toBe("queue:a");
});
