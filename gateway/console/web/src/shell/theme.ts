/** Light, dark, or as the system has it. */

import { Store } from "../api/store";

export type Theme = "light" | "dark";
const KEY = "corvo.theme";
const system = window.matchMedia("(prefers-color-scheme: dark)");

const current = (): Theme => {
  const chosen = document.documentElement.dataset["theme"];
  return chosen === "light" || chosen === "dark" ? chosen : system.matches ? "dark" : "light";
};

export const theme = new Store<Theme>(current());
system.addEventListener("change", () => theme.set(current()));

export function toggleTheme(): void {
  const next = theme.value === "dark" ? "light" : "dark";
  document.documentElement.dataset["theme"] = next;
  remember(KEY, next);
  theme.set(next);
}

/** Storage may be forbidden or full: then nothing is remembered. */
export function remember(key: string, value: string): void {
  try {
    localStorage.setItem(key, value);
  } catch {
    return;
  }
}

export function recall(key: string): string | null {
  try {
    return localStorage.getItem(key);
  } catch {
    return null;
  }
}
