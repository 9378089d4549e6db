export type { components, operations } from "./api.js";
export { Client, type ClientOptions, type EndpointName } from "./client.js";
export * from "./errors.js";
export type { CorvoEvent, EventFilter } from "./events.js";
