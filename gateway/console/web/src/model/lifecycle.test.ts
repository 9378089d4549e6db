import { expect, test } from "vitest";
import facts from "../generated/facts";
import { EDGES, pathOf, PICTURE, PLACES, storyOf, wayOf, wentBy } from "./lifecycle";

const told = (...types: string[]) => types.map((type, at) => ({ type, at_ns: at }));
const states = (types: string[], state: string) => wayOf(told(...types), state, 0).map((step) => step.state);

test("every state of the server has a place, inside the picture and apart from the others", () => {
  expect(Object.keys(PLACES).sort()).toEqual([...facts.states].sort());
  const places = Object.values(PLACES);
  expect(new Set(places.map(String)).size).toBe(places.length);
  for (const [x, y] of places) {
    expect(x).toBeGreaterThan(50);
    expect(x).toBeLessThan(PICTURE.width - 50);
    expect(y).toBeLessThan(PICTURE.height);
  }
});

test("every arrow of the table can be drawn", () => {
  const pairs = new Set(facts.rules.flatMap((rule) => rule.from.map((from) => `${from} ${rule.to}`)));
  expect(EDGES.length).toBe(pairs.size);
  for (const edge of EDGES) expect(pathOf(edge)).not.toContain("NaN");
});

test("the way of a job that failed, was retried and completed", () => {
  const types = ["enqueued", "started", "failed", "promoted", "started", "completed"];
  expect(states(types, "completed")).toEqual(["pending", "active", "retrying", "pending", "active", "completed"]);
});

test("the last failure leads to dead, not to a retry", () => {
  expect(states(["enqueued", "started", "failed", "dead"], "dead")).toEqual(["pending", "active", "dead"]);
});

test("a job that was enqueued for later began as scheduled", () => {
  expect(states(["enqueued", "promoted", "started"], "active")).toEqual(["scheduled", "pending", "active"]);
});

test("where events are missing, the way ends in the state that it has", () => {
  expect(states([], "held")).toEqual(["held"]);
  expect(states(["enqueued", "started"], "cancelled")).toEqual(["pending", "active", "cancelled"]);
});

test("a job tells its own story when its events are gone", () => {
  const at = (second: number) => `2026-01-31T09:00:0${second}Z`;
  const story = storyOf({
    state: "dead",
    created_at: at(0),
    failed_at: at(4),
    attempts: [
      { outcome: "failed", started_at: at(1), ended_at: at(2) },
      { outcome: "failed", started_at: at(3), ended_at: at(4) },
    ],
  });
  const way = wayOf(story, "dead", 0);
  expect(way.map((step) => step.state)).toEqual(["pending", "active", "retrying", "pending", "active", "dead"]);
  expect(EDGES.filter((edge) => wentBy(way, edge)).length).toBe(4);
});
