/** Keys: one letter, or `g` and a letter. They are silent while somebody types. */

import { useEffect } from "preact/hooks";

type Action = () => void;

const SECOND_MS = 1_000;
const layers: Record<string, Action>[] = [];
let pending = "";
let pendingAt = 0;

const isTyping = (target: EventTarget | null): boolean =>
  target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName));

window.addEventListener("keydown", (event) => {
  const isPalette = (event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k";
  if (isPalette) return run(event, "mod+k");
  if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return undefined;
  if (isTyping(event.target)) {
    if (event.key === "Escape") (event.target as HTMLElement).blur();
    return undefined;
  }
  const isSecond = pending !== "" && Date.now() - pendingAt < SECOND_MS;
  const name = isSecond ? `${pending} ${event.key}` : event.key;
  pending = "";
  if (event.key === "g" && !isSecond) {
    pending = "g";
    pendingAt = Date.now();
    return undefined;
  }
  if (event.key === "Enter" && event.target instanceof HTMLElement && event.target.closest("a,button,summary")) {
    return undefined;
  }
  return run(event, name);
});

function run(event: KeyboardEvent, name: string): void {
  for (const layer of [...layers].reverse()) {
    const action = layer[name];
    if (action) {
      event.preventDefault();
      action();
      return;
    }
  }
}

/** While the component is there. The latest wins: a page before the shell. */
export function useKeys(actions: Record<string, Action>): void {
  const layer: Record<string, Action> = actions;
  useEffect(() => {
    layers.push(layer);
    return () => void layers.splice(layers.indexOf(layer), 1);
  });
}
