/** One stream of events a tab, for what the page shows. It resumes where it was, and is closed while nobody looks. */

import { useEffect } from "preact/hooks";
import facts from "../generated/facts";
import { API as API_ROOT } from "./client";
import { away, isPaused, isVisible, mustLogIn, presence } from "./presence";
import { Store } from "./store";
import type { Event } from "./types";

export interface Wanted {
  queues?: readonly string[];
  jobIds?: readonly string[];
  types?: readonly string[];
}

export type LiveState = "off" | "connecting" | "live" | "paused";
export const liveState = new Store<LiveState>("off");

interface Subscriber {
  address: string;
  cursor: string;
  take: (event: Event) => void;
}

const REOPEN_MS = 3_000;
let subscribers: Subscriber[] = []; // the last one is served: it belongs to the page
let source: EventSource | null = null;
let opened: Subscriber | null = null;
let reopening = 0;

export function useEvents(wanted: Wanted | null, take: (event: Event) => void): void {
  const address = wanted === null ? null : addressOf(wanted);
  useEffect(() => {
    if (address === null) return undefined;
    const subscriber: Subscriber = { address, cursor: "", take };
    subscribers.push(subscriber);
    arrange();
    return () => {
      subscribers = subscribers.filter((one) => one !== subscriber);
      arrange();
    };
  }, [address]);
}

function addressOf({ queues, jobIds, types }: Wanted): string {
  const params = new URLSearchParams();
  if (queues?.length) params.set("queues", queues.join(","));
  if (jobIds?.length) params.set("job_ids", jobIds.join(","));
  if (types?.length) params.set("types", types.join(","));
  return params.toString();
}

function arrange(): void {
  const next = subscribers[subscribers.length - 1] ?? null;
  const isWanted = next !== null && isVisible.value && !isPaused.value && !presence.value.isAway && !mustLogIn.value;
  if (!isWanted) {
    close();
    liveState.set(next !== null && (isPaused.value || !isVisible.value) ? "paused" : "off");
  } else if (opened !== next || source === null) {
    close();
    open(next);
  }
}

function close(): void {
  window.clearTimeout(reopening);
  source?.close();
  source = null;
  opened = null;
}

function open(subscriber: Subscriber): void {
  const params = new URLSearchParams(subscriber.address);
  if (subscriber.cursor) params.set("after", subscriber.cursor);
  liveState.set("connecting");
  opened = subscriber;
  source = new EventSource(`${API_ROOT}/events?${params}`);
  const mine = source;
  mine.onopen = () => liveState.set("live");
  mine.onmessage = (message) => void (subscriber.cursor = message.lastEventId || subscriber.cursor);
  for (const name of facts.events) {
    mine.addEventListener(name, (message: MessageEvent<string>) => {
      subscriber.cursor = message.lastEventId || subscriber.cursor;
      subscriber.take(JSON.parse(message.data) as Event);
    });
  }
  mine.onerror = () => {
    if (source !== mine) return;
    liveState.set("connecting");
    if (mine.readyState !== EventSource.CLOSED) return;
    source = null; // refused, or the server is gone: asking again tells which
    reopening = window.setTimeout(arrange, REOPEN_MS);
    void fetch(`${API_ROOT}/info`, { cache: "no-store" }).catch(away);
  };
}

for (const store of [isVisible, isPaused, presence, mustLogIn] as readonly { follow: (f: () => void) => void }[]) {
  store.follow(arrange);
}
