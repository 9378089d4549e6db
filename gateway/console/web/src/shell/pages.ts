/** Every page: its address, its key, and what one must be allowed to see it. */

import type { ComponentType } from "preact";
import type { IconName } from "../parts/icons";
import type { EndpointName } from "../api/session";
import { s } from "../strings";
import { Audit } from "../pages/audit";
import { BatchPage, Batches } from "../pages/batches";
import { BulkPage, Bulks } from "../pages/bulks";
import { Cluster } from "../pages/cluster";
import { Dead } from "../pages/dead";
import { Events } from "../pages/events";
import { Held } from "../pages/held";
import { Home } from "../pages/home";
import { JobPage } from "../pages/job";
import { QueuePage } from "../pages/queue";
import { Queues } from "../pages/queues";
import { SchedulePage, Schedules } from "../pages/schedules";
import { Scheduled } from "../pages/scheduled";
import { Search } from "../pages/search";
import { Settings } from "../pages/settings";
import { WorkerPage, Workers } from "../pages/workers";

export interface Page {
  path: string;
  title: string;
  icon: IconName;
  key: string; // after `g`
  needs: EndpointName;
  view: ComponentType;
  detail?: ComponentType<{ name: string }>;
}

export const GROUPS: readonly (readonly [string, readonly Page[]])[] = [
  [
    s.nav.watch,
    [
      { path: "", title: s.nav.home, icon: "home", key: "h", needs: "queues", view: Home },
      { path: "queues", title: s.nav.queues, icon: "queues", key: "q", needs: "queues", view: Queues, detail: QueuePage },
      { path: "workers", title: s.nav.workers, icon: "worker", key: "w", needs: "workers", view: Workers, detail: WorkerPage },
      { path: "events", title: s.nav.events, icon: "events", key: "e", needs: "events", view: Events },
    ],
  ],
  [
    s.nav.jobs,
    [
      { path: "jobs", title: s.nav.search, icon: "search", key: "s", needs: "search", view: Search, detail: JobPage },
      { path: "dead", title: s.nav.dead, icon: "dead", key: "d", needs: "dead", view: Dead },
      { path: "held", title: s.nav.held, icon: "held", key: "a", needs: "held", view: Held },
      { path: "scheduled", title: s.nav.scheduled, icon: "clock", key: "l", needs: "search", view: Scheduled },
      { path: "batches", title: s.nav.batches, icon: "batch", key: "b", needs: "batches", view: Batches, detail: BatchPage },
      { path: "schedules", title: s.nav.schedules, icon: "calendar", key: "c", needs: "schedules", view: Schedules, detail: SchedulePage },
      { path: "bulk", title: s.nav.bulk, icon: "bulk", key: "o", needs: "bulks", view: Bulks, detail: BulkPage },
    ],
  ],
  [
    s.nav.run,
    [
      { path: "cluster", title: s.nav.cluster, icon: "cluster", key: "n", needs: "cluster_status", view: Cluster },
      { path: "settings", title: s.nav.settings, icon: "settings", key: "t", needs: "api_keys", view: Settings },
      { path: "audit", title: s.nav.audit, icon: "audit", key: "u", needs: "audit_logs", view: Audit },
    ],
  ],
];

export const PAGES: readonly Page[] = GROUPS.flatMap(([, pages]) => pages);
