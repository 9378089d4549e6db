/** The server's types under the names that the pages use. */

import type { components } from "../generated/api";

type Schemas = components["schemas"];

export type Queue = Schemas["QueueView"];
export type QueueDetail = Schemas["QueueDetail"];
export type JobSummary = Schemas["JobSummary"];
export type Job = Schemas["JobView"];
export type Attempt = Schemas["AttemptView"];
export type Why = Schemas["WhyView"];
export type SearchAnswer = Schemas["SearchAnswer"];
export type Worker = Schemas["WorkerView"];
export type WorkerDetail = Schemas["WorkerDetail"];
export type Schedule = Schemas["ScheduleView"];
export type Batch = Schemas["BatchView"];
export type BatchesAnswer = Schemas["BatchesAnswer"];
export type Bulk = Schemas["BulkView"];
export type BulkDone = Schemas["BulkDone"];
export type BulkStarted = Schemas["BulkStarted"];
export type ErrorGroup = Schemas["ErrorGroup"];
export type ErrorGroupsAnswer = Schemas["ErrorGroupsAnswer"];
export type Cluster = Schemas["ClusterStatus"];
export type Shard = Schemas["ShardView"];
export type Point = Schemas["ThroughputPoint"];
export type Event = Schemas["EventView"];
export type EventsPage = Schemas["EventsPage"];
export type Principal = Schemas["PrincipalView"];
export type Key = Schemas["KeyView"];
export type KeyCreated = Schemas["KeyCreated"];
export type Role = Schemas["RoleView"];
export type Namespace = Schemas["NamespaceView"];
export type Sso = Schemas["SsoView"];
export type AuditLog = Schemas["AuditLogView"];
export type AuditLogs = Schemas["AuditLogsAnswer"];
export type ServerInfo = Schemas["ServerInfo"];
export type FulltextAnswer = Schemas["FulltextAnswer"];
export type Failure = Schemas["FailureView"];
