// The same file of moments as board.py, for Node.js, which has no mmap: a write of eight bytes to the page cache.
import { openSync, writeSync } from "node:fs";

const descriptor = openSync(process.env.RIVALS_BOARD, "r+");
const moment = Buffer.alloc(8);

const now = () => Number(process.hrtime.bigint()) / 1e9;

function write(position, at) {
  moment.writeDoubleLE(at);
  writeSync(descriptor, moment, 0, 8, position);
}

export const arrive = (number) => write(16 * number + 8, now());

// As produce.py: `node with_….mjs produce --first N --count N --seconds S --rate R`.
export async function produce(send) {
  const given = new Map();
  for (let at = 3; at < process.argv.length; at += 2) given.set(process.argv[at], Number(process.argv[at + 1]));
  const first = given.get("--first") ?? 0;
  const last = Math.min(first + (given.get("--count") ?? 1e6), 1e6);
  const rate = given.get("--rate");
  const started = now();
  let sent = 0;
  for (let number = first; number < last; number++, sent++) {
    const due = rate ? started + sent / rate : now();
    if (rate) {
      const pause_ms = Math.floor((due - now()) * 1000) - 1; // its timers know milliseconds only, and are late
      if (pause_ms > 0) await new Promise((done) => setTimeout(done, pause_ms));
      while (now() < due);
    } else if (now() - started > (given.get("--seconds") ?? 3600)) break;
    write(16 * number, due);
    await send(number);
  }
  console.log(JSON.stringify({ sent, seconds: now() - started }));
}
