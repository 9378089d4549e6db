/** Addresses: below the console's base, so that any prefix of a proxy works. Filters live in the address too. */

import type { ComponentChildren } from "preact";
import { BASE } from "../api/client";
import { Store } from "../api/store";

export interface Place {
  path: string; // `queues/mail`, without the base
  params: URLSearchParams;
}

function read(): Place {
  const path = location.pathname.startsWith(BASE.pathname) ? location.pathname.slice(BASE.pathname.length) : "";
  return { path: decodeSafely(path), params: new URLSearchParams(location.search) };
}

function decodeSafely(path: string): string {
  try {
    return decodeURIComponent(path);
  } catch {
    return path;
  }
}

export const place = new Store<Place>(read());
window.addEventListener("popstate", () => place.set(read()));

/** A name with slashes keeps them: each of its parts is encoded on its own. */
export const encodeName = (name: string): string => name.split("/").map(encodeURIComponent).join("/");

export function hrefOf(path: string, params: Record<string, string> = {}): string {
  const query = new URLSearchParams(Object.entries(params).filter(([, value]) => value !== "")).toString();
  return BASE.pathname + path + (query ? `?${query}` : "");
}

export function go(href: string): void {
  history.pushState(null, "", href);
  place.set(read());
  window.scrollTo(0, 0);
  document.getElementById("content")?.focus({ preventScroll: true });
}

/** Changes what stands behind the `?`, without a step in the history for each letter typed. */
export function setParams(changes: Record<string, string | null>): void {
  const params = new URLSearchParams(location.search);
  for (const [name, value] of Object.entries(changes)) {
    if (value === null || value === "") params.delete(name);
    else params.set(name, value);
  }
  const query = params.toString();
  history.replaceState(null, "", location.pathname + (query ? `?${query}` : ""));
  place.set(read());
}

interface LinkProps {
  to: string;
  params?: Record<string, string>;
  children: ComponentChildren;
  class?: string;
  title?: string;
  "aria-current"?: "page";
}

export function Link({ to, params, children, ...rest }: LinkProps) {
  const href = hrefOf(to, params);
  const follow = (event: MouseEvent) => {
    if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey) return;
    event.preventDefault();
    go(href);
  };
  return (
    <a {...rest} href={href} onClick={follow}>
      {children}
    </a>
  );
}

/** Of an id, the part in which jobs of one shard differ most. */
export function shortId(id: string): string {
  const found = /^(s\d+)_job_([0-9a-f]{16})/.exec(id);
  return found ? `${found[1]}…${found[2]!.slice(-8)}` : id.slice(0, 24);
}

export const JobLink = ({ id, isLong = false }: { id: string; isLong?: boolean }) => (
  <Link to={`jobs/${encodeURIComponent(id)}`} class="mono" title={id}>
    {isLong ? id : shortId(id)}
  </Link>
);

export const QueueLink = ({ name }: { name: string }) => (
  <Link to={`queues/${encodeName(name)}`} class="strong">
    {name}
  </Link>
);
