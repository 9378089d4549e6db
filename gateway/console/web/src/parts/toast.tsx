/** Short messages about what was done, read out by screen readers. */

import { Store } from "../api/store";
import { s } from "../strings";
import { Icon } from "./icons";

interface Toast {
  id: number;
  text: string;
  isError: boolean;
}

const SHOWN_MS = 5_000;
const ERROR_SHOWN_MS = 12_000;
const SHOWN_MAX = 4;
const toasts = new Store<readonly Toast[]>([]);
let count = 0;

export function toast(text: string, isError = false): void {
  const id = (count += 1);
  toasts.set([...toasts.value.slice(1 - SHOWN_MAX), { id, text, isError }]);
  window.setTimeout(() => drop(id), isError ? ERROR_SHOWN_MS : SHOWN_MS);
}

const drop = (id: number): void => toasts.set(toasts.value.filter((one) => one.id !== id));

/** Runs what a button does: says that it is done, or why not. */
export async function attempt(work: () => Promise<unknown>, done: string): Promise<boolean> {
  try {
    await work();
  } catch (error) {
    toast(error instanceof Error ? error.message : String(error), true);
    return false;
  }
  if (done) toast(done);
  return true;
}

export function Toasts() {
  return (
    <div class="toasts" role="status" aria-live="polite">
      {toasts.use().map((one) => (
        <div key={one.id} class={one.isError ? "toast bad" : "toast"}>
          <Icon name={one.isError ? "alert" : "check"} />
          <span>{one.text}</span>
          <button class="plain" aria-label={s.close} onClick={() => drop(one.id)}>
            <Icon name="cross" />
          </button>
        </div>
      ))}
    </div>
  );
}
