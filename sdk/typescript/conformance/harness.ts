/** The library as the conformance suite drives it: one JSON object a line in, one out (sdk/conformance/README.md). */
import { createInterface } from "node:readline";
import { setTimeout as pause } from "node:timers/promises";

import { Client, CorvoError, type EndpointName } from "../src/index.js";
import { Discard, Retry, Snooze, Worker, type Context, type Job } from "../src/worker.js";

interface Asked {
  id: number;
  do: string;
  [field: string]: unknown;
}
type Step = Record<string, never> & Record<string, unknown>;

let client: Client;
let url = "";
let worker: Worker | undefined;
const snoozed = new Map<string, number>(); // job → step behind the one that snoozed

async function handle(job: Job, context: Context): Promise<unknown> {
  const steps = (job.payload as { steps: Step[] }).steps;
  for (let at = snoozed.get(job.job_id) ?? 0; at < steps.length; at++) {
    const step = steps[at]!;
    if ("sleep_ms" in step) await pause(step["sleep_ms"]);
    if ("progress" in step) await context.progress(step["progress"]);
    if ("checkpoint" in step) await context.checkpoint(step["checkpoint"]);
    if ("return" in step) return step["return"];
    if ("return_checkpoint" in step) return job.checkpoint;
    if ("fail" in step) throw new Error(step["fail"]);
    if ("discard" in step) throw new Discard(step["discard"]);
    if ("retry_ms" in step) throw new Retry(step["retry_ms"]);
    if ("snooze_ms" in step) {
      snoozed.set(job.job_id, at + 1);
      throw new Snooze(step["snooze_ms"]);
    }
    if ("until_cancelled" in step) {
      while (!context.isCancelled) await pause(20);
      throw new Error("cancelled");
    }
  }
  return undefined;
}

async function serve(asked: Asked): Promise<unknown> {
  const get = <T>(name: string) => asked[name] as T;
  switch (asked.do) {
    case "open":
      url = get("url");
      client = new Client({ url, deadlineMs: get("deadline_ms") });
      return null;
    case "call": {
      const options = asked["deadline_ms"] ? { deadlineMs: get<number>("deadline_ms") } : {};
      const parameters = get<unknown>("body") ?? get<unknown>("query");
      return (await client.call(get<EndpointName>("name"), get("path"), parameters, options)) ?? null;
    }
    case "events": {
      const found = [];
      for await (const event of client.events(get("query"))) {
        if (found.push(event) >= get<number>("count")) break;
      }
      return found;
    }
    case "work": {
      worker = new Worker({
        url,
        concurrency: get("concurrency"),
        workerId: get("worker_id"),
        transport: get("transport"),
        leaseDuration: get("lease_s"),
        onError: (error) => console.error(error),
      });
      for (const queue of get<string[]>("queues")) worker.register(queue, handle);
      worker.start();
      return null;
    }
    case "drain":
    case "close":
      await worker?.drain();
      worker = undefined;
      return null;
    default:
      throw new Error(`unknown: ${asked.do}`);
  }
}

for await (const line of createInterface({ input: process.stdin })) {
  const asked = JSON.parse(line) as Asked;
  let answer: object;
  try {
    answer = { answer: await serve(asked) };
  } catch (error) {
    const { code, status } = error instanceof CorvoError ? error : { code: "", status: 0 };
    answer = { error: { class: (error as Error).constructor.name, code, status, message: String(error) } };
  }
  process.stdout.write(`${JSON.stringify({ id: asked.id, ...answer })}\n`);
}
process.exit(0);
