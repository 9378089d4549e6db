/** Whether the server answers, and whether anybody looks: when to ask at all. */

import { ApiError, get, onAnswer } from "./client";
import { Store } from "./store";

export interface Presence {
  isAway: boolean;
  since: number;
  nextTryAt: number;
}

const FIRST_RETRY_MS = 1_000;
const RETRY_MAX_MS = 15_000;
const HERE: Presence = { isAway: false, since: 0, nextTryAt: 0 };

export const presence = new Store<Presence>(HERE);
export const isVisible = new Store(document.visibilityState !== "hidden");
export const isPaused = new Store(false); // by the viewer
export const mustLogIn = new Store(false);
let delay = FIRST_RETRY_MS;
let timer = 0;

document.addEventListener("visibilitychange", () => isVisible.set(document.visibilityState !== "hidden"));

onAnswer((error) => {
  if (error === null) {
    back();
  } else if (error.isAway) {
    away();
  } else if (error.status === 401) {
    mustLogIn.set(true);
  }
});

export const mayAsk = (): boolean =>
  isVisible.value && !isPaused.value && !presence.value.isAway && !mustLogIn.value;

export function away(): void {
  if (timer !== 0) return;
  const since = presence.value.isAway ? presence.value.since : Date.now();
  presence.set({ isAway: true, since, nextTryAt: Date.now() + delay });
  timer = window.setTimeout(() => void retry(), delay);
  delay = Math.min(delay * 2, RETRY_MAX_MS);
}

export async function retry(): Promise<void> {
  window.clearTimeout(timer);
  timer = 0;
  try {
    await get("/info");
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
  }
}

function back(): void {
  window.clearTimeout(timer);
  timer = 0;
  delay = FIRST_RETRY_MS;
  presence.set(HERE);
}
