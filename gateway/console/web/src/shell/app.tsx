/** The frame around all pages: navigation, what the server's state is, and who looks. */

import { useEffect, useState } from "preact/hooks";
import { get, ROOT } from "../api/client";
import { liveState, useEvents } from "../api/live";
import { isPaused, isVisible, mustLogIn, presence, retry } from "../api/presence";
import { touch, useQuery } from "../api/query";
import { begin, hasCredential, logOut, may, session } from "../api/session";
import type { Queue } from "../api/types";
import { short } from "../model/format";
import { Empty, Failed, Loading, useNow } from "../parts/basic";
import { Dialogs, show } from "../parts/dialog";
import { Bird, Icon } from "../parts/icons";
import { attempt, Toasts } from "../parts/toast";
import { s } from "../strings";
import { EnqueueDialog } from "./enqueue";
import { HelpDialog } from "./help";
import { useKeys } from "./keys";
import { Login } from "./login";
import { GROUPS, PAGES } from "./pages";
import { Palette } from "./palette";
import { go, hrefOf, Link, place } from "./router";
import { theme, toggleTheme } from "./theme";

// What changes the counts in the navigation. Progress and starts are left out: there are too many.
const BADGE_EVENTS = ["dead", "held", "approved", "rejected", "queue_paused", "queue_resumed", "queue_deleted"] as const;
const BADGES_MS = 10_000;

export function App() {
  const isOut = mustLogIn.use();
  const who = session.use();
  const [error, setError] = useState<Error | null>(null);
  useEffect(() => {
    begin().catch((reason: Error) => setError(reason));
  }, []);
  const { isAway } = presence.use();
  useEffect(() => {
    if (!isAway && who === null && !mustLogIn.value) begin().then(() => setError(null), (reason: Error) => setError(reason));
  }, [isAway]);
  if (isOut) return <Login />;
  if (who === null) return error === null ? <Loading /> : <Unreachable message={error.message} />;
  return <Frame />;
}

function Unreachable({ message }: { message: string }) {
  return (
    <main class="alone">
      <Empty icon="alert" title={message}>
        <button onClick={() => void retry()}>{s.tryAgain}</button>
      </Empty>
    </main>
  );
}

function Frame() {
  const { path } = place.use();
  const [isOpen, setOpen] = useState(false);
  useEffect(() => setOpen(false), [path]);
  useEvents({ types: BADGE_EVENTS }, () => touch("queues"));
  useKeys({
    "?": () => show(<HelpDialog />),
    "mod+k": () => show(<Palette />),
    ":": () => show(<Palette />),
    "/": () => document.querySelector<HTMLInputElement>("[data-search]")?.focus() ?? go(hrefOf("jobs")),
    t: toggleTheme,
    p: () => isPaused.set(!isPaused.value),
    n: () => may("enqueue") && show(<EnqueueDialog />),
    ...Object.fromEntries(PAGES.map((page) => [`g ${page.key}`, () => go(hrefOf(page.path))])),
  });
  return (
    <div class={isOpen ? "frame open" : "frame"}>
      <a class="skip" href="#content" onClick={(event) => (event.preventDefault(), document.getElementById("content")?.focus())}>
        {s.skip}
      </a>
      <Navigation />
      <div class="veil" onClick={() => setOpen(false)} />
      <div class="column">
        <TopBar onMenu={() => setOpen(!isOpen)} />
        <AwayBanner />
        <main id="content" tabIndex={-1}>
          <Routed path={path} />
        </main>
      </div>
      <Dialogs />
      <Toasts />
    </div>
  );
}

function Routed({ path }: { path: string }) {
  const [first = ""] = path.split("/");
  const name = path.slice(first.length + 1);
  const page = PAGES.find((one) => one.path === first);
  if (!page) return <Empty icon="search" title={s.noSuchPage(path)} />;
  if (name && page.detail) return <page.detail key={name} name={name} />;
  if (!may(page.needs)) return <Failed error={{ status: 403, message: s.needs(page.title) } as never} />;
  return <page.view />;
}

function Navigation() {
  const { path } = place.use();
  const [first = ""] = path.split("/");
  const badges = useBadges();
  return (
    <nav class="sidebar" aria-label={s.nav.label}>
      <Link to="" class="brand">
        <Bird /> <span>Corvo</span>
      </Link>
      <div class="groups">
        {GROUPS.map(([title, pages]) => {
          const shown = pages.filter((page) => may(page.needs));
          return shown.length === 0 ? null : (
            <div key={title}>
              <p>{title}</p>
              <ul>
                {shown.map((page) => (
                  <li key={page.path}>
                    <Link to={page.path} {...(first === page.path ? { "aria-current": "page" as const } : {})}>
                      <Icon name={page.icon} />
                      <span>{page.title}</span>
                      {(badges[page.path] ?? 0) > 0 && <b class={`badge ${page.path}`}>{short(badges[page.path] ?? 0)}</b>}
                    </Link>
                  </li>
                ))}
              </ul>
            </div>
          );
        })}
      </div>
      <Viewer />
    </nav>
  );
}

function useBadges(): Record<string, number> {
  const { data } = useQuery<Queue[]>(may("queues") ? "queues" : null, () => get("/queues"), {
    everyMs: BADGES_MS,
    tags: ["queues"],
  });
  const sum = (pick: (queue: Queue) => number) => (data ?? []).reduce((total, queue) => total + pick(queue), 0);
  const [dead, held] = [sum((queue) => queue.dead), sum((queue) => queue.held)];
  useEffect(() => {
    const icon = document.getElementById("favicon") as HTMLLinkElement | null;
    const look = () => {
      const name = presence.value.isAway ? "away" : dead > 0 ? "trouble" : "calm";
      if (icon && !icon.href.endsWith(`${name}.svg`)) icon.href = `./${name}.svg`;
    };
    look();
    return presence.follow(look);
  }, [dead]);
  return { dead, held };
}

function Viewer() {
  const who = session.use();
  if (who === null) return null;
  const { principal, version } = who;
  const name = hasCredential() ? principal.name : s.everybody;
  return (
    <div class="viewer">
      <div>
        <b title={name}>{name}</b>
        <span>
          {principal.roles.join(", ")}
          {principal.namespace !== "default" && ` · ${principal.namespace}`} · {version}
        </span>
      </div>
      {hasCredential() && (
        <button class="plain" title={s.logOut} aria-label={s.logOut} onClick={() => void attempt(logOut, "")}>
          <Icon name="out" />
        </button>
      )}
    </div>
  );
}

function TopBar({ onMenu }: { onMenu: () => void }) {
  const shown = theme.use();
  return (
    <header class="top">
      <button class="plain menu" aria-label={s.nav.open} onClick={onMenu}>
        <Icon name="menu" />
      </button>
      <button class="finder" onClick={() => show(<Palette />)}>
        <Icon name="search" /> <span>{s.palette.open}</span> <kbd>Ctrl K</kbd>
      </button>
      <LiveButton />
      <button class="plain" title={s.help.title} aria-label={s.help.title} onClick={() => show(<HelpDialog />)}>
        <Icon name="help" />
      </button>
      <button class="plain" title={s.theme} aria-label={s.theme} onClick={toggleTheme}>
        <Icon name={shown === "dark" ? "sun" : "moon"} />
      </button>
      {may("enqueue") && (
        <button class="primary" onClick={() => show(<EnqueueDialog />)}>
          <Icon name="plus" /> <span class="label">{s.enqueue.open}</span>
        </button>
      )}
    </header>
  );
}

function LiveButton() {
  const state = liveState.use();
  const paused = isPaused.use();
  const { isAway } = presence.use();
  isVisible.use();
  const word = isAway ? "away" : paused ? "paused" : state;
  return (
    <button class={`live ${word}`} title={s.live.hint} aria-pressed={paused} onClick={() => isPaused.set(!paused)}>
      <i /> <span>{s.live[word]}</span>
    </button>
  );
}

function AwayBanner() {
  const { isAway, since, nextTryAt } = presence.use();
  const now = useNow();
  if (!isAway) return null;
  return (
    <div class="away-banner" role="alert">
      <Icon name="alert" />
      <span>{s.away(ROOT.host, Math.max(0, Math.ceil((now - since) / 1000)))}</span>
      <span aria-hidden="true">{s.nextTry(Math.max(0, Math.ceil((nextTryAt - now) / 1000)))}</span>
      <button onClick={() => void retry()}>{s.tryNow}</button>
    </div>
  );
}
