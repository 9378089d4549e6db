/** Events as they happen: the tail of everything, or of what the filters leave. */

import { useEffect, useRef, useState } from "preact/hooks";
import { useEvents } from "../api/live";
import type { Event } from "../api/types";
import facts from "../generated/facts";
import { stringify } from "../model/exact";
import { quoted } from "../model/shell";
import { CopyAs, Empty, Head, Time, useTitle } from "../parts/basic";
import { Icon } from "../parts/icons";
import { JobLink, place, QueueLink, setParams } from "../shell/router";
import { s } from "../strings";

const KEPT = 500;
const DRAW_MS = 150; // however many arrive

export function Events() {
  useTitle(s.nav.events);
  const { params } = place.use();
  const [types, queue] = [params.getAll("type"), params.get("queue") ?? ""];
  const [shown, setShown] = useState<readonly Event[]>([]);
  const [isFrozen, setFrozen] = useState(false);
  const [total, setTotal] = useState(0);
  const fresh = useRef<Event[]>([]);
  const count = useRef(0);
  useEvents({ types, ...(queue ? { queues: [queue] } : {}) }, (event) => {
    count.current += 1;
    fresh.current.push(event);
    if (fresh.current.length > KEPT) fresh.current.shift();
  });
  useEffect(() => {
    if (isFrozen) return undefined;
    const timer = window.setInterval(() => {
      if (fresh.current.length === 0) return;
      const arrived = fresh.current.splice(0).reverse();
      setTotal(count.current);
      setShown((now) => [...arrived, ...now].slice(0, KEPT));
    }, DRAW_MS);
    return () => window.clearInterval(timer);
  }, [isFrozen]);
  const toggle = (type: string) => {
    const next = types.includes(type) ? types.filter((one) => one !== type) : [...types, type];
    const query = new URLSearchParams(location.search);
    query.delete("type");
    for (const one of next) query.append("type", one);
    history.replaceState(null, "", `${location.pathname}?${query}`);
    setParams({});
    setShown([]);
  };
  const path = `/events?${new URLSearchParams([...(types.length ? [["types", types.join(",")] as [string, string]] : []), ...(queue ? [["queues", queue] as [string, string]] : [])])}`;
  return (
    <>
      <Head title={s.nav.events} about={s.events.about(total)}>
        <CopyAs call={{ method: "GET", path }} command={["events --follow", ...types.map((type) => `--type ${type}`), ...(queue ? [`--queue ${quoted(queue)}`] : [])].join(" ")} />
        <button aria-pressed={isFrozen} onClick={() => setFrozen(!isFrozen)}>
          <Icon name={isFrozen ? "play" : "pause"} /> {isFrozen ? s.events.go : s.events.freeze}
        </button>
        <button onClick={() => setShown([])}>{s.events.clear}</button>
      </Head>
      <div class="filters">
        <div class="chips" role="group" aria-label={s.events.types}>
          {facts.events.map((type) => (
            <button key={type} class="chip" aria-pressed={types.includes(type)} onClick={() => toggle(type)}>
              {type.replaceAll("_", " ")}
            </button>
          ))}
        </div>
        <div class="box">
          <Icon name="search" />
          <input
            type="text"
            data-search
            aria-label={s.events.queue}
            placeholder={s.events.queue}
            value={queue}
            onChange={(event) => (setParams({ queue: event.currentTarget.value.trim() || null }), setShown([]))}
          />
        </div>
      </div>
      {shown.length === 0 ? (
        <Empty icon="events" title={s.events.waiting} />
      ) : (
        <div class="table" tabIndex={0} role="region" aria-label={s.nav.events}>
          <table class="tail">
            <thead>
              <tr>
                <th scope="col">{s.events.at}</th>
                <th scope="col">{s.events.type}</th>
                <th scope="col">{s.columns.queue}</th>
                <th scope="col">{s.columns.job}</th>
                <th scope="col" class="wide rank-3">
                  {s.events.data}
                </th>
              </tr>
            </thead>
            <tbody>
              {shown.map((event) => (
                <tr key={`${event.shard} ${event.seq}`}>
                  <td>
                    <Time at={event.at_ns / 1e6} />
                  </td>
                  <td>
                    <span class={`event ${event.type}`}>{event.type.replaceAll("_", " ")}</span>
                  </td>
                  <td>{event.queue && <QueueLink name={event.queue} />}</td>
                  <td>{event.job_id && <JobLink id={event.job_id} />}</td>
                  <td class="wide rank-3">{event.data !== undefined && event.data !== null && <code>{stringify(event.data, 0).slice(0, 120)}</code>}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </>
  );
}
