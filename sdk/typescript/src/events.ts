import { errorOf } from "./errors.js";

export interface EventFilter {
  queues?: string;
  job_ids?: string;
  types?: string;
  /** Begin behind this event; `0` for the oldest that is kept. Without it: from now on. */
  last_event_id?: string;
}

export interface CorvoEvent {
  id: string;
  type: string;
  job_id?: string;
  queue?: string;
  [field: string]: unknown;
}

const SILENCE_MS = 40_000; // the server says something every 15 s
const PAUSE_MS = 500;

export async function* events(
  fetch: typeof globalThis.fetch,
  url: string,
  headers: Record<string, string>,
  filter: EventFilter,
  signal?: AbortSignal,
): AsyncGenerator<CorvoEvent> {
  let { last_event_id: last, ...rest } = filter;
  while (!signal?.aborted) {
    const query = new URLSearchParams({ ...rest, ...(last === undefined ? {} : { last_event_id: last }) });
    const silence = new AbortController();
    let timer = setTimeout(() => silence.abort(), SILENCE_MS);
    try {
      const signals = [silence.signal, ...(signal ? [signal] : [])];
      const response = await fetch(`${url}?${query}`, {
        headers: { ...headers, accept: "text/event-stream" },
        signal: AbortSignal.any(signals),
      });
      if (!response.ok || !response.body) throw errorOf(response.status, null, await response.text());
      const read = new EventParser();
      for await (const piece of response.body.pipeThrough(new TextDecoderStream())) {
        clearTimeout(timer);
        timer = setTimeout(() => silence.abort(), SILENCE_MS);
        for (const event of read.take(piece)) {
          last = event.id || last;
          yield event;
        }
      }
    } catch (error) {
      if (signal?.aborted) return;
      const status = (error as { status?: number }).status ?? 0;
      if (status >= 400 && status < 500 && status !== 429) throw error;
    } finally {
      clearTimeout(timer);
      silence.abort();
    }
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
  }
}

/** Server-sent events out of pieces of text that end anywhere. */
export class EventParser {
  #rest = "";

  *take(piece: string): Generator<CorvoEvent> {
    const blocks = (this.#rest + piece).split("\n\n");
    this.#rest = blocks.pop() ?? "";
    for (const block of blocks) {
      const fields: Record<string, string> = {};
      for (const line of block.split("\n")) {
        const colon = line.indexOf(":");
        if (colon > 0) fields[line.slice(0, colon)] = line.slice(colon + 1).replace(/^ /, "");
      }
      if (fields["data"] === undefined) continue; // a comment keeps the connection alive
      const data = JSON.parse(fields["data"]) as Record<string, unknown>;
      yield { ...data, id: fields["id"] ?? "", type: fields["event"] ?? String(data["type"]) };
    }
  }
}
