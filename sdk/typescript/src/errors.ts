/** Why a call did not succeed. Each class stands for what a program can do about it. */
export class CorvoError extends Error {
  constructor(
    message: string,
    /** The server's code, such as `LEASE_LOST`. */
    readonly code: string,
    /** The HTTP status; 0 if no answer came. */
    readonly status: number,
    readonly retryAfterMs: number | undefined = undefined,
    readonly field: string | undefined = undefined,
  ) {
    super(message);
    this.name = new.target.name;
  }
}

/** The server is busy and changed nothing. It was asked again until the deadline. */
export class Overloaded extends CorvoError {}
/** No leader, no shard, or a server that is stopping: nothing was changed. It was asked again until the deadline. */
export class Unavailable extends CorvoError {}
/** No answer came. What the request did is not known. */
export class Unreachable extends CorvoError {}
export class NotFound extends CorvoError {}
/** Another worker may have the job: drop it. */
export class LeaseLost extends CorvoError {}
/** The job is in a state in which this cannot be done. */
export class WrongState extends CorvoError {}
/** The request is wrong; `field` says where. */
export class InvalidRequest extends CorvoError {}
export class Unauthorized extends CorvoError {}
export class Forbidden extends CorvoError {}

const BY_CODE: Record<string, typeof CorvoError> = { LEASE_LOST: LeaseLost };
const BY_STATUS: Record<number, typeof CorvoError> = {
  400: InvalidRequest,
  401: Unauthorized,
  403: Forbidden,
  404: NotFound,
  409: WrongState,
  413: InvalidRequest,
  415: InvalidRequest,
  422: InvalidRequest,
  429: Overloaded,
  503: Unavailable,
};

/** From an answer that is no success. A page of a proxy has no code of ours. */
export function errorOf(status: number, retryAfter: string | null, text: string): CorvoError {
  let body: { error?: string; code?: string; field?: string; retry_after_ms?: number } = {};
  try {
    body = JSON.parse(text) as typeof body;
  } catch {
    // not ours: the status says enough
  }
  const kind = BY_CODE[body.code ?? ""] ?? BY_STATUS[status] ?? CorvoError;
  const seconds = Number(retryAfter ?? Number.NaN);
  const wait = Number.isNaN(seconds) ? body.retry_after_ms : seconds * 1000;
  return new kind(body.error ?? (text.slice(0, 300) || `HTTP ${status}`), body.code ?? "", status, wait, body.field);
}
