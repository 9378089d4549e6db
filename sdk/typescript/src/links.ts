/** The two ways of a worker to the server: requests of HTTP, or frames of one WebSocket. */
import type { Client } from "./client.js";
import { CorvoError, Unreachable } from "./errors.js";
import type { WebSocket } from "ws";

export interface Job {
  job_id: string;
  queue: string;
  payload: unknown;
  attempt: number;
  max_retries: number;
  /** In seconds. Each heartbeat renews it. */
  lease_duration: number;
  lease_token: number;
  checkpoint?: unknown;
  tags?: Record<string, string>;
}

export interface Wanted {
  queues: string[];
  worker_id: string;
  hostname: string;
  count: number;
  lease_duration?: number;
}

/** How the server took one item. A code says why it did not. */
export interface Outcome {
  status?: string | null;
  code?: string | null;
  error?: string | null;
}

export type Report = { job_id: string; lease_token: number } & Record<string, unknown>;
export type Beat = { lease_token: number; progress?: unknown; checkpoint?: unknown };

export interface Link {
  fetch(wanted: Wanted, waitMs: number): Promise<Job[]>;
  report(kind: "ack" | "fail", item: Report): Promise<Outcome>;
  heartbeat(jobs: Record<string, Beat>): Promise<Record<string, Outcome>>;
  close(): void;
}

export class HttpLink implements Link {
  constructor(private readonly client: Client) {}

  async fetch(wanted: Wanted, waitMs: number): Promise<Job[]> {
    const body = { ...wanted, timeout: waitMs / 1000 };
    return ((await this.client.call("fetch_batch", [], body)) as { jobs: Job[] }).jobs;
  }

  async report(kind: "ack" | "fail", item: Report): Promise<Outcome> {
    const body = kind === "ack" ? { acks: [item] } : { fails: [item] };
    const answer = (await this.client.call(`${kind}_batch`, [], body)) as { results: Outcome[] };
    return answer.results[0] ?? {};
  }

  async heartbeat(jobs: Record<string, Beat>): Promise<Record<string, Outcome>> {
    return ((await this.client.call("heartbeat", [], { jobs })) as { jobs: Record<string, Outcome> }).jobs;
  }

  close(): void {}
}

type MakeSocket = (url: string, headers: Record<string, string>) => WebSocket;
type Frame = Record<string, unknown> & { id: number | null; code?: string; error?: string; retry_after_ms?: number };

const ANSWER_MS = 20_000; // for one frame, beyond the wait of its fetch
const CONNECT_MS = 10_000;

/** Reports of one tick go as one frame. A broken connection fails what was open; the worker sends it again. */
export class StreamLink implements Link {
  #socket: Promise<WebSocket> | undefined;
  #number = 0;
  #isClosed = false;
  readonly #open = new Map<number, { done: (frame: Frame) => void; failed: (error: Error) => void }>();
  #due: { ack: Report[]; fail: Report[]; told: Promise<Frame> } | undefined;

  constructor(
    private readonly client: Client,
    private readonly makeSocket: MakeSocket,
  ) {}

  async fetch(wanted: Wanted, waitMs: number): Promise<Job[]> {
    const answer = await this.#ask({ fetch: { ...wanted, wait_ms: waitMs } }, ANSWER_MS + waitMs);
    if (!answer["jobs"]) throw refusalOf(answer);
    return answer["jobs"] as Job[];
  }

  async report(kind: "ack" | "fail", item: Report): Promise<Outcome> {
    this.#due ??= { ack: [], fail: [], told: Promise.resolve().then(() => this.#flush()) };
    const due = this.#due;
    const place = due[kind].push(item) - 1;
    const answer = await due.told;
    const results = answer[kind === "ack" ? "acked" : "failed"] as Outcome[] | undefined;
    return results?.[place] ?? { code: answer.code ?? "", error: answer.error ?? "" };
  }

  async heartbeat(jobs: Record<string, Beat>): Promise<Record<string, Outcome>> {
    const answer = await this.#ask({ heartbeat: jobs }, ANSWER_MS);
    if (!answer["heartbeat"]) throw refusalOf(answer);
    return answer["heartbeat"] as Record<string, Outcome>;
  }

  close(): void {
    this.#isClosed = true;
    void this.#socket?.then((socket) => socket.close()).catch(() => undefined);
  }

  #flush(): Promise<Frame> {
    const { ack, fail } = this.#due!;
    this.#due = undefined;
    return this.#ask({ ...(ack.length ? { ack } : {}), ...(fail.length ? { fail } : {}) }, ANSWER_MS);
  }

  async #ask(parts: Record<string, unknown>, patienceMs: number): Promise<Frame> {
    const socket = await (this.#socket ??= this.#connect());
    const id = ++this.#number;
    return await new Promise<Frame>((resolve, reject) => {
      const timer = setTimeout(() => this.#fail(id, "the stream did not answer"), patienceMs);
      this.#open.set(id, {
        done: (frame) => (clearTimeout(timer), resolve(frame)),
        failed: (error) => (clearTimeout(timer), reject(error)),
      });
      socket.send(JSON.stringify({ id, ...parts }));
    });
  }

  #fail(id: number, reason: string): void {
    const waiting = this.#open.get(id);
    this.#open.delete(id);
    waiting?.failed(new Unreachable(reason, "UNREACHABLE", 0));
  }

  async #connect(): Promise<WebSocket> {
    if (this.#isClosed) throw new Unreachable("the stream is closed", "UNREACHABLE", 0);
    const url = `${this.client.url.replace(/^http/, "ws")}/api/v1/stream`;
    const socket = this.makeSocket(url, this.client.headers);
    const lost = () => {
      this.#socket = undefined;
      for (const id of [...this.#open.keys()]) this.#fail(id, "the stream broke");
    };
    return await new Promise<WebSocket>((resolve, reject) => {
      const giveUp = (reason: string) => {
        lost();
        reject(new Unreachable(`${url}: ${reason}`, "UNREACHABLE", 0));
      };
      const timer = setTimeout(() => (giveUp("no connection"), socket.close()), CONNECT_MS);
      socket.addEventListener("open", () => (clearTimeout(timer), resolve(socket)));
      socket.addEventListener("error", () => (clearTimeout(timer), giveUp("the connection failed")));
      socket.addEventListener("close", () => (clearTimeout(timer), giveUp("the connection was closed")));
      socket.addEventListener("message", (event) => {
        const frame = JSON.parse(String(event.data)) as Frame;
        if (frame.id === null) return; // the server stops: it answers open frames, then closes
        const waiting = this.#open.get(frame.id);
        this.#open.delete(frame.id);
        waiting?.done(frame);
      });
    });
  }
}

function refusalOf(frame: Frame): CorvoError {
  return new CorvoError(frame.error ?? "the frame was refused", frame.code ?? "", 0, frame.retry_after_ms);
}
