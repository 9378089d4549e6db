/** What pages read: kept by key, read again after a while, after an event, and when the server or the viewer is back. */

import { useCallback, useEffect, useState } from "preact/hooks";
import { ApiError } from "./client";
import { isPaused, isVisible, mayAsk, presence } from "./presence";

interface Entry {
  data: unknown;
  error: ApiError | null;
  readAt: number;
  isReading: boolean;
  followers: Set<() => void>;
  load: () => Promise<unknown>;
  everyMs: number;
  timer: number;
  tags: readonly string[];
  again: boolean; // touched while it was being read
}

export interface Result<T> {
  data: T | undefined;
  error: ApiError | null;
  isLoading: boolean; // for the first time
  readAt: number;
  reload: () => void;
}

const KEPT_MAX = 100;
const AT_LEAST_MS = 1_000; // between two reads, however many events come
const entries = new Map<string, Entry>();

export function useQuery<T>(
  key: string | null,
  load: () => Promise<T>,
  { everyMs = 0, tags = [] }: { everyMs?: number; tags?: readonly string[] } = {},
): Result<T> {
  const [, redraw] = useState(0);
  const entry = key === null ? null : entryOf(key, load, everyMs, tags);
  useEffect(() => {
    if (key === null || entry === null) return undefined;
    const follower = () => redraw((count) => count + 1);
    entry.followers.add(follower);
    if (entry.readAt === 0 || Date.now() - entry.readAt > AT_LEAST_MS) void read(entry);
    else plan(entry);
    return () => {
      entry.followers.delete(follower);
      if (entry.followers.size === 0) window.clearTimeout(entry.timer);
    };
  }, [key]);
  const reload = useCallback(() => void (entry && read(entry)), [entry]);
  return {
    data: entry?.data as T | undefined,
    error: entry?.error ?? null,
    isLoading: entry !== null && entry.data === undefined && entry.error === null,
    readAt: entry?.readAt ?? 0,
    reload,
  };
}

function entryOf(key: string, load: () => Promise<unknown>, everyMs: number, tags: readonly string[]): Entry {
  let entry = entries.get(key);
  if (entry === undefined) {
    entry = {
      data: undefined,
      error: null,
      readAt: 0,
      isReading: false,
      followers: new Set(),
      load,
      everyMs,
      timer: 0,
      tags,
      again: false,
    };
    entries.set(key, entry);
    forget();
  }
  entry.load = load;
  entry.everyMs = everyMs;
  entry.tags = tags;
  return entry;
}

function forget(): void {
  for (const [key, entry] of entries) {
    if (entries.size <= KEPT_MAX) return;
    if (entry.followers.size === 0 && !entry.isReading) entries.delete(key);
  }
}

async function read(entry: Entry): Promise<void> {
  window.clearTimeout(entry.timer);
  if (entry.isReading) {
    entry.again = true;
    return;
  }
  entry.isReading = true;
  try {
    entry.data = await entry.load();
    entry.error = null;
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    entry.error = error;
  } finally {
    entry.isReading = false;
    entry.readAt = Date.now();
    for (const follower of [...entry.followers]) follower();
    plan(entry);
  }
}

function plan(entry: Entry): void {
  window.clearTimeout(entry.timer);
  if (entry.followers.size === 0) return;
  const wait = entry.again ? AT_LEAST_MS : entry.everyMs;
  entry.again = false;
  if (wait > 0) entry.timer = window.setTimeout(() => mayAsk() && void read(entry), wait);
}

/** Something with one of these tags has changed. */
export function touch(...tags: string[]): void {
  for (const entry of entries.values()) {
    if (!entry.tags.some((tag) => tags.includes(tag))) continue;
    if (entry.followers.size === 0) entry.readAt = 0;
    else if (entry.isReading) entry.again = true;
    else soon(entry);
  }
}

function soon(entry: Entry): void {
  const wait = Math.max(0, entry.readAt + AT_LEAST_MS - Date.now());
  window.clearTimeout(entry.timer);
  entry.timer = window.setTimeout(() => mayAsk() && void read(entry), wait);
}

/** Read everything on the page: the viewer did something, or is back. */
export function refresh(): void {
  for (const entry of entries.values()) {
    if (entry.followers.size > 0) void read(entry);
    else entry.readAt = 0;
  }
}

/** Of another person. */
export function forgetAll(): void {
  for (const [key, entry] of entries) {
    entry.data = undefined;
    entry.readAt = 0;
    if (entry.followers.size === 0) entries.delete(key);
  }
}

let wasAway = false;
presence.follow(() => {
  const { isAway } = presence.value;
  if (wasAway && !isAway && isVisible.value) refresh();
  wasAway = isAway;
});
for (const store of [isVisible, isPaused]) store.follow(() => mayAsk() && refresh());
