/** Which requests are sent again, and when. Pure. */
import { CorvoError, Overloaded, Unavailable, Unreachable } from "./errors.js";

const FIRST_PAUSE_MS = 100;
const PAUSE_MAX_MS = 5_000;
/** Codes after which the request may have been carried out. */
const UNCERTAIN = new Set(["OUTCOME_UNKNOWN", "DEADLINE_EXCEEDED"]);

/**
 * How long to wait before a request is sent again; undefined if it must not be. `repeats` is what the server says of its
 * endpoint: a request that repeats `by key` has an `Idempotency-Key`, and its repetition has the same effect.
 */
export function pauseAfter(error: unknown, repeats: string, attempt: number): number | undefined {
  if (!(error instanceof CorvoError)) return undefined;
  const backoff = Math.min(FIRST_PAUSE_MS * 2 ** attempt, PAUSE_MAX_MS);
  if (error instanceof Unreachable || UNCERTAIN.has(error.code)) return repeats === "never" ? undefined : backoff;
  if (error instanceof Overloaded || error instanceof Unavailable) return error.retryAfterMs ?? backoff;
  return undefined;
}
