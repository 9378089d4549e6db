import { Client } from "corvo-client";
import { Worker } from "corvo-client/worker";

const url = process.env["CORVO_URL"] ?? "http://localhost:8080";

const client = new Client({ url });
const { job_id } = await client.enqueue({ queue: "letters.ts", payload: { to: "ada@example.org" } });

const worker = new Worker({ url, concurrency: 10 });
worker.register("letters.ts", async (job, context) => {
  await context.progress({ current: 1, total: 1 });
  return { sent: job.payload };
});
worker.start();

let job = await client.getJob(job_id);
while (job.state !== "completed") job = await client.getJob(job_id);
console.log(job.state, JSON.stringify(job.result));
await worker.drain();
