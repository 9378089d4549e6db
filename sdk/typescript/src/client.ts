import type { operations } from "./api.js";
import { CorvoError, errorOf, Unreachable } from "./errors.js";
import { events, type CorvoEvent, type EventFilter } from "./events.js";
import { pauseAfter } from "./retry.js";
import { ROUTES } from "./routes.js";

export type EndpointName = keyof typeof ROUTES & keyof operations;

type Json<T> = T extends { content: infer C } ? (C extends Record<string, infer B> ? B : never) : undefined;
type Responses<N extends EndpointName> = operations[N]["responses"];
type Success<N extends EndpointName> = {
  [S in keyof Responses<N>]: S extends 200 | 201 | 202 ? Json<Responses<N>[S]> : S extends 204 ? undefined : never;
}[keyof Responses<N>];
type BodyOf<N extends EndpointName> = operations[N] extends { requestBody?: infer R } ? Json<NonNullable<R>> : never;
type QueryOf<N extends EndpointName> = operations[N]["parameters"] extends { query?: infer Q } ? NonNullable<Q> : never;
type PathOf<N extends EndpointName> = operations[N]["parameters"] extends { path: infer P } ? P : never;
type Optional<T> = {} extends T ? [T?] : [T];

/** Parameters of the path first, then the body or the query. */
type Args<N extends EndpointName> = [
  ...([PathOf<N>] extends [never]
    ? []
    : { [K in keyof PathOf<N>]: string } extends infer P
      ? [...Strings<keyof P>]
      : []),
  ...([BodyOf<N>] extends [never] ? ([QueryOf<N>] extends [never] ? [] : Optional<QueryOf<N>>) : Optional<BodyOf<N>>),
];
type Strings<K> = [K] extends [never] ? [] : IsUnion<K> extends true ? [string, string] : [string];
type IsUnion<T, U = T> = T extends U ? ([U] extends [T] ? false : true) : never;

type Camel<S extends string> = S extends `${infer A}_${infer B}` ? `${A}${Capitalize<Camel<B>>}` : S;
type Methods = {
  [N in Exclude<EndpointName, "events"> as Camel<N>]: (...args: Args<N>) => Promise<Success<N>>;
};

export interface ClientOptions {
  /** Such as `https://jobs.example.com`; a path in front of `/api/v1` is kept. */
  url: string;
  apiKey?: string;
  /** For one answer, beyond the time that the server may hold it back. */
  timeoutMs?: number;
  /** For all attempts of one call. */
  deadlineMs?: number;
  headers?: Record<string, string>;
  fetch?: typeof globalThis.fetch;
}

/** A method for each endpoint, named like it: `client.enqueue(…)`, `client.getJob(id)`. Works in browsers. */
export interface Client extends Methods {}

export class Client {
  readonly url: string;
  readonly headers: Record<string, string>;
  readonly #timeoutMs: number;
  readonly #deadlineMs: number;
  readonly #fetch: typeof globalThis.fetch;

  constructor(options: ClientOptions) {
    this.url = options.url.replace(/\/+$/, "");
    this.headers = { ...options.headers, ...(options.apiKey ? { "x-api-key": options.apiKey } : {}) };
    this.#timeoutMs = options.timeoutMs ?? 10_000;
    this.#deadlineMs = options.deadlineMs ?? 15_000;
    this.#fetch = options.fetch ?? globalThis.fetch.bind(globalThis);
  }

  /** Any endpoint by its name. A request is sent again only if that cannot happen twice. */
  async call(
    name: EndpointName,
    path: readonly string[] = [],
    parameters?: unknown,
    options: { deadlineMs?: number; signal?: AbortSignal } = {},
  ): Promise<unknown> {
    const route = ROUTES[name];
    const body = route.hasBody ? parameters : undefined;
    const url = this.url + fillPath(route.path, path) + (route.hasBody ? "" : queryOf(parameters));
    const headers: Record<string, string> = { accept: "application/json", ...this.headers };
    const init: RequestInit = { method: route.method, headers };
    if (body !== undefined) {
      init.body = JSON.stringify(body);
      headers["content-type"] = "application/json";
    }
    if (route.repeats === "by key") headers["idempotency-key"] = newKey();
    const ends = Date.now() + (options.deadlineMs ?? this.#deadlineMs);
    const patience = this.#timeoutMs + route.waitMs + waitOf(body);
    for (let attempt = 0; ; attempt++) {
      if (route.repeats === "by key") headers["x-corvo-attempt"] = String(attempt + 1);
      try {
        return await this.#send(url, init, patience, options.signal);
      } catch (error) {
        const pause = pauseAfter(error, route.repeats, attempt);
        if (pause === undefined || Date.now() + pause > ends || options.signal?.aborted) throw error;
        await new Promise((resolve) => setTimeout(resolve, pause));
      }
    }
  }

  async #send(url: string, init: RequestInit, patienceMs: number, signal?: AbortSignal): Promise<unknown> {
    let response: Response;
    let text: string;
    try {
      const signals = [AbortSignal.timeout(patienceMs), ...(signal ? [signal] : [])];
      response = await this.#fetch(url, { ...init, signal: AbortSignal.any(signals) });
      text = await response.text();
    } catch (error) {
      if (signal?.aborted) throw error;
      throw new Unreachable(`${this.url} did not answer: ${reasonOf(error)}`, "UNREACHABLE", 0);
    }
    if (!response.ok) throw errorOf(response.status, response.headers.get("retry-after"), text);
    if (!text) return undefined;
    try {
      return JSON.parse(text) as unknown;
    } catch {
      throw new CorvoError("the answer is not JSON: is this a Corvo server?", "UNREADABLE_ANSWER", response.status);
    }
  }

  /** Events of every state change. A connection that breaks is taken up again where it was: none is lost. */
  events(filter: EventFilter = {}, signal?: AbortSignal): AsyncGenerator<CorvoEvent> {
    return events(this.#fetch, `${this.url}/api/v1/events`, this.headers, filter, signal);
  }
}

for (const name of Object.keys(ROUTES) as EndpointName[]) {
  if (name === "events") continue;
  const parameters = ROUTES[name].path.split("{").length - 1;
  Object.defineProperty(Client.prototype, camel(name), {
    value(this: Client, ...args: unknown[]) {
      return this.call(name, args.slice(0, parameters) as string[], args[parameters]);
    },
  });
}

export function camel(name: string): string {
  return name.replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase());
}

/** A UUID of version 7: the ids that follow from it sort by the time of their request. */
export function newKey(now = Date.now()): string {
  const time = now.toString(16).padStart(12, "0");
  return `${time.slice(0, 8)}-${time.slice(8)}-7${globalThis.crypto.randomUUID().slice(15)}`;
}

function fillPath(path: string, values: readonly string[]): string {
  let next = 0;
  return path.replace(/\{\w+\}/g, () => encodeURIComponent(values[next++] ?? ""));
}

export function queryOf(query: unknown): string {
  const given = Object.entries((query ?? {}) as Record<string, unknown>).filter(([, value]) => value !== undefined);
  return given.length ? `?${new URLSearchParams(given.map(([name, value]) => [name, String(value)]))}` : "";
}

/** How long a fetch may wait: its `timeout`, in seconds. */
function waitOf(body: unknown): number {
  const timeout = (body as { timeout?: unknown } | undefined)?.timeout;
  return typeof timeout === "number" ? timeout * 1000 : 0;
}

function reasonOf(error: unknown): string {
  const cause = (error as { cause?: { code?: string; message?: string } }).cause;
  return cause?.code ?? cause?.message ?? (error as Error).message;
}
