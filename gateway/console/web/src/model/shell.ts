/** Requests as lines for a shell: what a view shows can be had with curl or `corvo`. Pure. */

export interface Call {
  method: "GET" | "POST" | "PUT" | "DELETE";
  path: string; // below /api/v1
  body?: unknown;
}

/** One word of a POSIX shell. */
export const quoted = (text: string): string =>
  /^[A-Za-z0-9_./:=@%+-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;

/** The key is read from the environment: it must not end up in a history or a chat. */
export function curlOf(call: Call, server: string, hasKey: boolean): string {
  const words = ["curl"];
  if (call.method !== "GET") words.push("-X", call.method);
  words.push(quoted(`${server}api/v1${call.path}`));
  if (hasKey) words.push("-H", '"X-API-Key: $CORVO_API_KEY"');
  if (call.body !== undefined) {
    words.push("-H", quoted("content-type: application/json"), "-d", quoted(JSON.stringify(call.body)));
  }
  return words.join(" ");
}

export const commandOf = (command: string, server: string): string =>
  `corvo ${command}${server === "http://localhost:8080/" ? "" : ` --server ${quoted(server.replace(/\/$/, ""))}`}`;
