// pg-boss. `node with_pgboss.mjs produce …`, `node with_pgboss.mjs work`.
import { createRequire } from "node:module";
import { arrive, produce } from "./board.mjs";

const require = createRequire(process.env.RIVALS_NODE_MODULES + "/");
const library = require("pg-boss");
const PgBoss = library.PgBoss ?? library.default ?? library;
const boss = new PgBoss(process.env.RIVALS_URL);
boss.on("error", (error) => console.error(String(error)));
await patiently(() => boss.start());
await patiently(() => boss.createQueue("rivals"));

// Two that make its tables at the same moment get in each other's way.
async function patiently(make) {
  for (let attempt = 1; ; attempt++) {
    try {
      return await make();
    } catch (error) {
      if (attempt === 10) throw error;
      await new Promise((done) => setTimeout(done, 200));
    }
  }
}

if (process.argv[2] === "work") {
  await boss.work("rivals", { batchSize: 100, pollingIntervalSeconds: 0.5 }, async (jobs) => {
    for (const job of jobs) arrive(job.data.number);
  });
} else {
  await produce((number) => boss.send("rivals", { number, padding: "x".repeat(80) }));
  await boss.stop({ graceful: false });
  process.exit(0);
}
