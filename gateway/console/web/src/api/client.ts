/** Requests to the server that serves this page. */

import { parseExact } from "../model/exact";
import type { Call } from "../model/shell";

/** Where the console is: `https://host/prefix/ui/`. */
export const BASE = new URL(document.baseURI);
export const ROOT = new URL("../", BASE); // of the server, behind whatever prefix
export const API = new URL("api/v1", ROOT).href;
const TIMEOUT_MS = 30_000;

export class ApiError extends Error {
  constructor(
    readonly status: number, // 0: no answer came
    readonly code: string,
    message: string,
    readonly field: string | null = null,
  ) {
    super(message);
  }

  get isAway(): boolean {
    return this.status === 0 || this.status === 502 || this.status === 504;
  }
}

type Listener = (error: ApiError | null) => void;
let listener: Listener = () => undefined;

/** Called after each answer with null, or with what went wrong. */
export function onAnswer(called: Listener): void {
  listener = called;
}

export async function ask<T>(call: Call, signal?: AbortSignal): Promise<T> {
  try {
    const value = await send(call, signal);
    listener(null);
    return value as T;
  } catch (error) {
    if (error instanceof ApiError) listener(error);
    throw error;
  }
}

async function send(call: Call, signal?: AbortSignal): Promise<unknown> {
  const timeout = AbortSignal.timeout(TIMEOUT_MS);
  let response: Response;
  let text: string;
  try {
    response = await fetch(API + call.path, {
      method: call.method,
      credentials: "same-origin",
      cache: "no-store",
      redirect: "error",
      // A cookie counts for changes only with this type, so it is sent without a body too.
      ...(call.method === "GET" ? {} : { headers: { "content-type": "application/json" } }),
      ...(call.body === undefined ? {} : { body: JSON.stringify(call.body) }),
      signal: signal ? AbortSignal.any([signal, timeout]) : timeout,
    });
    text = await response.text();
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new ApiError(0, "UNREACHABLE", "the server cannot be reached");
  }
  let value: unknown = null;
  try {
    value = text === "" ? null : parseExact(text);
  } catch {
    throw new ApiError(response.status || 502, "NOT_JSON", `${response.status}: the answer is not JSON`);
  }
  if (response.ok) return value;
  const body = (value ?? {}) as { error?: string; code?: string; field?: string };
  throw new ApiError(response.status, body.code ?? "", body.error ?? `status ${response.status}`, body.field ?? null);
}

export const get = <T>(path: string, params: Record<string, string | number | undefined> = {}): Promise<T> =>
  ask<T>({ method: "GET", path: withParams(path, params) });

export const post = <T>(path: string, body?: unknown): Promise<T> =>
  ask<T>({ method: "POST", path, ...(body === undefined ? {} : { body }) });

export function withParams(path: string, params: Record<string, string | number | undefined>): string {
  const given = Object.entries(params).filter(([, value]) => value !== undefined && value !== "");
  const query = new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString();
  return query ? `${path}?${query}` : path;
}

export const queuePath = (name: string, action = ""): string => `/queues/${encodeURIComponent(name)}${action}`;
export const jobPath = (id: string, action = ""): string => `/jobs/${encodeURIComponent(id)}${action}`;
