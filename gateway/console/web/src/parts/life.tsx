/** The life of a job as a picture, with the way that this one took. */

import { EDGES, NODE, pathOf, PICTURE, PLACES, wentBy, type StateName, type Step } from "../model/lifecycle";
import { s } from "../strings";

export function Life({ way, state }: { way: readonly Step[]; state: string }) {
  const visits = new Map<string, number>();
  for (const step of way) visits.set(step.state, (visits.get(step.state) ?? 0) + 1);
  const told = way.map((step) => s.states[step.state]).join(" → ");
  return (
    <div class="life" tabIndex={0} role="region" aria-label={s.job.life}>
      <svg viewBox={`0 0 ${PICTURE.width} ${PICTURE.height}`} role="img" aria-label={s.job.lifeOf(told)}>
        <defs>
          {["faint", "went"].map((kind) => (
            <marker key={kind} id={`arrow-${kind}`} class={kind} viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto-start-reverse">
              <path d="M0 0L8 4L0 8z" />
            </marker>
          ))}
        </defs>
        {EDGES.map((edge) => {
          const went = wentBy(way, edge);
          if (!went && !edge.isMain) return null;
          return (
            <path key={`${edge.from} ${edge.to}`} class={went ? "edge went" : "edge"} d={pathOf(edge)} marker-end={`url(#arrow-${went ? "went" : "faint"})`}>
              <title>{edge.verbs.map((verb) => s.verbs[verb as keyof typeof s.verbs] ?? verb).join(", ")}</title>
            </path>
          );
        })}
        {(Object.keys(PLACES) as StateName[]).map((name) => {
          const [x, y] = PLACES[name];
          const count = visits.get(name) ?? 0;
          const kind = name === state ? "now" : count > 0 ? "been" : "";
          return (
            <g key={name} class={`node ${name} ${kind}`} transform={`translate(${x - NODE.width / 2} ${y - NODE.height / 2})`}>
              <rect width={NODE.width} height={NODE.height} rx="18" />
              <text x={NODE.width / 2} y={NODE.height / 2 + 5}>
                {s.states[name]}
              </text>
              {count > 1 && (
                <text class="visits" x={NODE.width - 2} y={-3}>
                  {count}×
                </text>
              )}
            </g>
          );
        })}
      </svg>
    </div>
  );
}
