/** Who looks, and what they may do. What is not allowed is not offered; the server decides in any case. */

import facts from "../generated/facts";
import { get, post } from "./client";
import { mustLogIn, presence } from "./presence";
import { forgetAll, refresh } from "./query";
import { Store } from "./store";
import type { Principal, ServerInfo } from "./types";

export type EndpointName = keyof typeof facts.access;

export interface Session {
  principal: Principal;
  version: string;
}

export const session = new Store<Session | null>(null);

export function allows(principal: Principal, access: string): boolean {
  if (access === "open") return true;
  const [resource = "", action = ""] = access.split(":");
  const isClusterWide = principal.home === "default" && !principal.queue_scope;
  const narrowed = (facts.clusterWide as Record<string, readonly string[]>)[resource];
  if (!isClusterWide && narrowed !== undefined && !narrowed.includes(action)) return false;
  return principal.permissions.some(
    (one) =>
      (one.resource === "*" || one.resource === resource) && (one.actions.includes("*") || one.actions.includes(action)),
  );
}

export function may(...names: EndpointName[]): boolean {
  const principal = session.value?.principal;
  return principal !== undefined && names.every((name) => allows(principal, facts.access[name]));
}

export const hasCredential = (): boolean => session.value !== null && session.value.principal.kind !== "anonymous";

export async function begin(): Promise<void> {
  const [principal, info] = await Promise.all([get<Principal>("/auth/whoami"), get<ServerInfo>("/info")]);
  session.set({ principal, version: info.server_version });
  mustLogIn.set(false);
}

export async function logIn(secret: string, isPassword: boolean): Promise<void> {
  await post("/auth/login", isPassword ? { password: secret } : { key: secret });
  forgetAll();
  await begin();
  refresh();
}

export async function logOut(): Promise<void> {
  await post("/auth/logout");
  session.set(null);
  forgetAll();
  mustLogIn.set(true);
}

export const isReachable = (): boolean => !presence.value.isAway;
