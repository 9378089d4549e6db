// BullMQ. `node with_bullmq.mjs produce …`, `node with_bullmq.mjs work`.
import { createRequire } from "node:module";
import { arrive, produce } from "./board.mjs";

const require = createRequire(process.env.RIVALS_NODE_MODULES + "/");
const { Queue, Worker } = require("bullmq");
const url = new URL(process.env.RIVALS_URL);
const connection = { host: url.hostname, port: Number(url.port), maxRetriesPerRequest: null };
const options = { removeOnComplete: true };

if (process.argv[2] === "work") {
  new Worker("rivals", async (job) => arrive(job.data.number), { connection, concurrency: 10 });
} else {
  const queue = new Queue("rivals", { connection });
  await produce((number) => queue.add("arrive", { number, padding: "x".repeat(80) }, options));
  await queue.close();
}
