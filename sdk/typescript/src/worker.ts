import { hostname } from "node:os";
import { WebSocket } from "ws";

import { Client, type ClientOptions } from "./client.js";
import { CorvoError } from "./errors.js";
import { HttpLink, StreamLink, type Beat, type Job, type Link, type Outcome } from "./links.js";

export type { Job } from "./links.js";

/** Throw one of these to say how a job goes on. Any other error is a failed attempt. */
export class Retry extends Error {
  constructor(
    readonly afterMs: number,
    message = "retry",
  ) {
    super(message);
  }
}
/** Give the job back for a while. Uses no attempt. */
export class Snooze extends Error {
  constructor(readonly forMs: number) {
    super("snoozed");
  }
}
/** The job can never succeed: no more attempts. */
export class Discard extends Error {}

export type Handler = (job: Job, context: Context) => unknown;

export interface WorkerOptions extends ClientOptions {
  queues?: string[];
  concurrency?: number;
  workerId?: string;
  transport?: "stream" | "http";
  /** In seconds: a job whose worker is silent for so long is given to another. The server's default is 60. */
  leaseDuration?: number;
  /** How long a drain waits for running jobs before it hands them back. */
  shutdownMs?: number;
  onError?: (error: unknown) => void;
}

const FETCH_WAIT_MS = 5_000; // a drain waits for the fetch that is open
const PAUSE_MS = 500;
const FETCH_COUNT_MAX = 512;
const GONE = new Set(["LEASE_LOST", "WRONG_STATE", "JOB_NOT_FOUND"]); // or reported already

/** What a handler may do while it runs. */
export class Context {
  readonly #abort = new AbortController();
  /** What the next heartbeat sends. */
  readonly beat: Beat;

  constructor(
    readonly job: Job,
    private readonly send: (context: Context) => Promise<void>,
  ) {
    this.beat = { lease_token: job.lease_token };
  }

  /** Aborted when the job is cancelled, its lease is lost, or the worker must end. */
  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  get isCancelled(): boolean {
    return this.#abort.signal.aborted;
  }

  async progress(progress: unknown): Promise<void> {
    this.beat.progress = progress;
    await this.send(this);
  }

  /** Stored with the job: its next attempt is given it. */
  async checkpoint(checkpoint: unknown): Promise<void> {
    this.beat.checkpoint = checkpoint;
    await this.send(this);
  }

  /** Of the worker: the handler is to stop. */
  stop(reason: string): void {
    this.#abort.abort(new Error(reason));
  }
}

/** Fetches jobs of the queues that have a handler, runs them, and reports what came of them. */
export class Worker {
  readonly #options: WorkerOptions;
  readonly #handlers = new Map<string, Handler>();
  readonly #active = new Map<string, Context>();
  readonly #link: Link;
  readonly #workerId: string;
  #isDraining = false;
  #fetching: Promise<void> | undefined;
  #beats: NodeJS.Timeout | undefined;
  #freed: () => void = () => undefined;

  constructor(options: WorkerOptions) {
    this.#options = options;
    this.#workerId = options.workerId ?? `${hostname()}-${process.pid}`;
    const client = new Client(options);
    this.#link =
      options.transport === "http"
        ? new HttpLink(client)
        : new StreamLink(
            client,
            (url, headers) => new WebSocket(url, "corvo.json.v1", { headers, perMessageDeflate: false }),
          );
  }

  register(queue: string, handler: Handler): this {
    this.#handlers.set(queue, handler);
    return this;
  }

  start(): this {
    this.#fetching ??= this.#fetchLoop();
    return this;
  }

  /** Until SIGTERM or SIGINT; the second one ends at once. */
  async run(): Promise<void> {
    this.start();
    await new Promise<void>((resolve) => {
      for (const signal of ["SIGTERM", "SIGINT"] as const) {
        process.once(signal, () => {
          process.once(signal, () => process.exit(1));
          resolve();
        });
      }
    });
    await this.drain();
  }

  /** Fetch no more, let running jobs end, and hand back those that do not end in time. */
  async drain(): Promise<void> {
    this.#isDraining = true;
    this.#freed();
    await this.#fetching;
    const ends = Date.now() + (this.#options.shutdownMs ?? 30_000);
    while (this.#active.size && Date.now() < ends) await pause(20);
    await Promise.all(
      [...this.#active.values()].map((context) => {
        context.stop("worker_shutdown");
        return this.#settle("fail", context, { error: "worker_shutdown", snooze_ms: 1 });
      }),
    );
    clearTimeout(this.#beats);
    this.#link.close();
  }

  async #fetchLoop(): Promise<void> {
    const concurrency = this.#options.concurrency ?? 10;
    const queues = this.#options.queues ?? [...this.#handlers.keys()];
    const lease = this.#options.leaseDuration ? { lease_duration: this.#options.leaseDuration } : {};
    const wanted = { queues, worker_id: this.#workerId, hostname: hostname(), ...lease };
    while (!this.#isDraining) {
      const free = concurrency - this.#active.size;
      if (free <= 0) {
        await new Promise<void>((resolve) => (this.#freed = resolve));
        continue;
      }
      try {
        const jobs = await this.#link.fetch({ ...wanted, count: Math.min(free, FETCH_COUNT_MAX) }, FETCH_WAIT_MS);
        for (const job of jobs) void this.#run(job);
      } catch (error) {
        this.#tell(error);
        await pause(error instanceof CorvoError ? (error.retryAfterMs ?? PAUSE_MS) : PAUSE_MS);
      }
    }
  }

  async #run(job: Job): Promise<void> {
    const context = new Context(job, (one) => this.#heartbeat([one]));
    this.#active.set(job.job_id, context);
    this.#beatSoon();
    try {
      if (this.#isDraining) return await this.#settle("fail", context, { error: "worker_shutdown", snooze_ms: 1 });
      const handler = this.#handlers.get(job.queue);
      if (!handler) return await this.#settle("fail", context, { error: `no handler for the queue ${job.queue}` });
      const result = await handler(job, context);
      await this.#settle("ack", context, result === undefined ? {} : { result });
    } catch (error) {
      await this.#settle("fail", context, failureOf(error));
    }
  }

  /** Reports until the server took it, or says that the job is not ours any more. */
  async #settle(kind: "ack" | "fail", context: Context, fields: Record<string, unknown>): Promise<void> {
    const { job_id, lease_token, lease_duration } = context.job;
    if (!this.#active.has(job_id)) return;
    const ends = Date.now() + lease_duration * 1000; // then it has been given to another worker
    try {
      while (Date.now() < ends) {
        let outcome: Outcome;
        try {
          outcome = await this.#link.report(kind, { job_id, lease_token, ...fields });
        } catch (error) {
          outcome = { code: error instanceof CorvoError ? error.code : "", error: String(error) };
        }
        if (outcome.status) return;
        if (GONE.has(outcome.code ?? ""))
          return this.#tell(new CorvoError(outcome.error ?? "", outcome.code ?? "", 409));
        if (outcome.code === "VALIDATION_ERROR" || outcome.code === "PAYLOAD_TOO_LARGE") {
          this.#tell(new CorvoError(outcome.error ?? "", outcome.code, 400));
          [kind, fields] = ["fail", { error: `the result was refused: ${outcome.error}` }];
          continue;
        }
        await pause(PAUSE_MS);
      }
    } finally {
      this.#active.delete(job_id);
      this.#freed();
    }
  }

  /** One request for all jobs, three times a lease. */
  #beatSoon(): void {
    const leases = [...this.#active.values()].map((context) => context.job.lease_duration);
    if (this.#beats || !leases.length) return;
    this.#beats = setTimeout(
      () => {
        this.#beats = undefined;
        this.#heartbeat([...this.#active.values()]).catch((error: unknown) => this.#tell(error));
        this.#beatSoon();
      },
      (Math.min(...leases) * 1000) / 3,
    );
  }

  async #heartbeat(contexts: Context[]): Promise<void> {
    if (!contexts.length) return;
    const statuses = await this.#link.heartbeat(Object.fromEntries(contexts.map((one) => [one.job.job_id, one.beat])));
    for (const context of contexts) {
      const status = statuses[context.job.job_id]?.status;
      if (status === "cancel") context.stop("cancelled");
      if (status === "lease_lost" || status === "unknown") {
        context.stop("lease lost");
        this.#active.delete(context.job.job_id);
        this.#freed();
      }
    }
  }

  #tell(error: unknown): void {
    this.#options.onError?.(error);
  }
}

function failureOf(error: unknown): Record<string, unknown> {
  if (error instanceof Snooze) return { error: error.message, snooze_ms: error.forMs };
  if (error instanceof Retry) return { error: error.message, retry_after_ms: error.afterMs };
  if (error instanceof Discard) return { error: error.message, retry: false };
  const { message, stack } = error instanceof Error ? error : { message: String(error), stack: undefined };
  return { error: message, ...(stack ? { backtrace: stack.slice(0, 16_000) } : {}) };
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
