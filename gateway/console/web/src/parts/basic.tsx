/** Small parts that every page uses. */

import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { ApiError } from "../api/client";
import { ROOT } from "../api/client";
import { hasCredential } from "../api/session";
import { Store } from "../api/store";
import { ago, localTime, span, utcTime } from "../model/format";
import { commandOf, curlOf, type Call } from "../model/shell";
import { s } from "../strings";
import { Icon, type IconName } from "./icons";
import { toast } from "./toast";

const CLOCK_MS = 1_000;
const clock = new Store(Date.now());
window.setInterval(() => document.visibilityState === "hidden" || clock.set(Date.now()), CLOCK_MS);
export const useNow = (): number => clock.use();

export const State = ({ name }: { name: string }) => (
  <span class={`state ${name}`}>
    <i />
    {s.states[name as keyof typeof s.states] ?? name}
  </span>
);

/** A moment in the viewer's zone, and in UTC where the pointer rests. */
export function Time({ at, isRelative = true }: { at: string | number | null | undefined; isRelative?: boolean }) {
  const now = useNow();
  if (at === null || at === undefined || at === "") return <span class="faint">–</span>;
  const iso = new Date(at).toISOString();
  const [told, other] = isRelative ? [ago(at, now), localTime(at)] : [localTime(at), ago(at, now)];
  return (
    <time dateTime={iso} title={`${other}\n${utcTime(at)}`}>
      {told}
    </time>
  );
}

export const Elapsed = ({ since }: { since: string | number }) => (
  <>{span(useNow() - (typeof since === "number" ? since : Date.parse(since)))}</>
);

export async function copy(text: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    copyWithoutClipboard(text); // pages that came without TLS have no clipboard
  }
  toast(s.copied);
}

function copyWithoutClipboard(text: string): void {
  const area = document.createElement("textarea");
  area.value = text;
  area.className = "unseen";
  document.body.append(area);
  area.select();
  document.execCommand("copy");
  area.remove();
}

export const CopyButton = ({ text, label }: { text: string; label: string }) => (
  <button type="button" class="plain small" title={label} aria-label={label} onClick={() => void copy(text)}>
    <Icon name="copy" />
  </button>
);

/** The view as a line for a shell. */
export function CopyAs({ call, command }: { call: Call; command?: string }) {
  return (
    <span class="copy-as">
      <button type="button" class="quiet" onClick={() => void copy(curlOf(call, ROOT.href, hasCredential()))}>
        <Icon name="copy" /> curl
      </button>
      {command !== undefined && (
        <button type="button" class="quiet" onClick={() => void copy(commandOf(command, ROOT.href))}>
          <Icon name="copy" /> corvo
        </button>
      )}
    </span>
  );
}

interface HeadProps {
  title: ComponentChildren;
  about?: ComponentChildren;
  children?: ComponentChildren;
}

export const Head = ({ title, about, children }: HeadProps) => (
  <div class="head">
    <div>
      <h1>{title}</h1>
      {about !== undefined && <p class="about">{about}</p>}
    </div>
    <div class="actions">{children}</div>
  </div>
);

interface CardProps {
  title?: ComponentChildren;
  side?: ComponentChildren;
  class?: string;
  children: ComponentChildren;
}

export const Card = ({ title, side, children, class: more = "" }: CardProps) => (
  <section class={`card ${more}`}>
    {title !== undefined && (
      <header>
        <h2>{title}</h2>
        <div class="side">{side}</div>
      </header>
    )}
    {children}
  </section>
);

interface FigureProps {
  label: string;
  value: ComponentChildren;
  more?: ComponentChildren;
  tone?: string;
}

export const Figure = ({ label, value, more, tone = "" }: FigureProps) => (
  <div class={`figure ${tone}`}>
    <dt>{label}</dt>
    <dd>{value}</dd>
    {more !== undefined && <dd class="more">{more}</dd>}
  </div>
);

export const Empty = ({ icon, title, hint, children }: { icon: IconName; title: string; hint?: string; children?: ComponentChildren }) => (
  <div class="empty">
    <Icon name={icon} />
    <p class="strong">{title}</p>
    {hint !== undefined && <code>{hint}</code>}
    {children}
  </div>
);

export const Failed = ({ error, retry }: { error: ApiError; retry?: () => void }) => (
  <div class="empty bad" role="alert">
    <Icon name="alert" />
    <p class="strong">{error.status === 403 ? s.forbidden : error.status === 404 ? s.notFound : s.cannotLoad}</p>
    <p>{error.message}</p>
    {retry && error.status !== 403 && <button onClick={retry}>{s.tryAgain}</button>}
  </div>
);

export const Loading = () => (
  <div class="loading" role="status" aria-label={s.loading}>
    <i />
    <i />
    <i />
  </div>
);

interface LoadedProps<T> {
  result: { data: T | undefined; error: ApiError | null; reload: () => void };
  children: (data: T) => ComponentChildren;
}

/** Loading, failed, or there. Data that could not be read again stays, marked. */
export function Loaded<T>({ result, children }: LoadedProps<T>) {
  const { data, error, reload } = result;
  if (data === undefined) return error ? <Failed error={error} retry={reload} /> : <Loading />;
  return (
    <>
      {error !== null && (
        <p class="stale" role="status">
          <Icon name="alert" /> {s.stale(error.message)} <button onClick={reload}>{s.tryAgain}</button>
        </p>
      )}
      {children(data)}
    </>
  );
}

/** Follows what is typed, a moment later. */
export function useSettled<T>(value: T, ms = 300): T {
  const [settled, settle] = useState(value);
  useEffect(() => {
    const timer = window.setTimeout(() => settle(value), ms);
    return () => window.clearTimeout(timer);
  }, [value, ms]);
  return settled;
}

export const useTitle = (title: string): void => {
  useEffect(() => {
    document.title = `${title} · Corvo`;
  }, [title]);
};
