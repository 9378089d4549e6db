// Writes src/routes.ts from openapi.json: where each endpoint is, by its name. The types come from openapi-typescript.
import { readFileSync, writeFileSync } from "node:fs";

const { paths } = JSON.parse(readFileSync("openapi.json", "utf8"));
const routes = Object.entries(paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, operation]) => [
    operation.operationId,
    {
      method: method.toUpperCase(),
      path,
      hasBody: "requestBody" in operation,
      repeats: operation["x-corvo-repeats"],
      waitMs: 1000 * (operation["x-corvo-wait-s"] ?? 0),
    },
  ]),
);
routes.sort(([one], [other]) => (one < other ? -1 : 1));
const text = JSON.stringify(Object.fromEntries(routes), null, 2);
writeFileSync(
  "src/routes.ts",
  `// Written by scripts/routes.mjs: do not edit.\n\nexport interface Route { method: string; path: string; hasBody: boolean; repeats: string; waitMs: number }\n\nexport const ROUTES = ${text} as const satisfies Record<string, Route>;\n`,
);
