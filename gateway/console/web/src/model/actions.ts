/** What can be done to jobs, and in which states: read from the transition table of the server. Pure. */

import type { EndpointName } from "../api/session";
import facts from "../generated/facts";

export type ActionName = "retry" | "requeue" | "approve" | "reject" | "hold" | "cancel" | "move" | "change_priority" | "delete";

export interface Action {
  name: ActionName;
  endpoint: EndpointName;
  states: readonly string[]; // of jobs that it is for
  isDangerous: boolean;
}

const ALL: readonly string[] = facts.states;
const WAITING = ["pending", "scheduled", "retrying", "held"];

const sourcesOf = (verb: string): readonly string[] => facts.rules.find((rule) => rule.verb === verb)?.from ?? [];

export const ACTIONS: readonly Action[] = [
  { name: "retry", endpoint: "retry", states: sourcesOf("run_again"), isDangerous: false },
  { name: "requeue", endpoint: "requeue", states: sourcesOf("requeue"), isDangerous: false },
  { name: "approve", endpoint: "approve", states: sourcesOf("approve"), isDangerous: false },
  { name: "reject", endpoint: "reject", states: sourcesOf("reject"), isDangerous: true },
  { name: "hold", endpoint: "hold", states: sourcesOf("hold").filter((state) => state !== "active"), isDangerous: false },
  { name: "cancel", endpoint: "cancel", states: sourcesOf("cancel"), isDangerous: true },
  { name: "move", endpoint: "move", states: ALL.filter((state) => state !== "active"), isDangerous: false },
  { name: "change_priority", endpoint: "change_priority", states: WAITING, isDangerous: false },
  { name: "delete", endpoint: "delete_job", states: ALL, isDangerous: true },
];

/** Those that make sense for at least one of the states; without states, all. */
export function actionsFor(states: readonly string[]): Action[] {
  if (states.length === 0) return [...ACTIONS];
  return ACTIONS.filter((action) => action.states.some((state) => states.includes(state)));
}
