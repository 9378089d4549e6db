/** Icons as SVG inside the page: nothing is loaded for them. Drawn on a grid of 24. */

const PATHS = {
  home: "M4 11l8-7 8 7v9h-5v-6H9v6H4z",
  queues: "M4 6h16M4 12h16M4 18h10",
  search: "M11 4a7 7 0 110 14 7 7 0 010-14zM16 16l5 5",
  dead: "M12 3a8 8 0 018 8c0 3-1 4-3 5v4H7v-4c-2-1-3-2-3-5a8 8 0 018-8zM9 11v1M15 11v1M10 20v-2M14 20v-2",
  clock: "M12 3a9 9 0 110 18 9 9 0 010-18zM12 7v5l3 3",
  calendar: "M4 6h16v14H4zM4 10h16M8 3v4M16 3v4",
  batch: "M4 4h7v7H4zM13 4h7v7h-7zM4 13h7v7H4zM13 13h7v7h-7z",
  held: "M9 5v14M15 5v14",
  worker: "M12 9a3 3 0 110 6 3 3 0 010-6zM12 3v3M12 18v3M3 12h3M18 12h3M6 6l2 2M16 16l2 2M18 6l-2 2M8 16l-2 2",
  cluster: "M12 4a2 2 0 110 4 2 2 0 010-4zM5 16a2 2 0 110 4 2 2 0 010-4zM19 16a2 2 0 110 4 2 2 0 010-4zM11 8l-5 8M13 8l5 8M7 18h10",
  events: "M3 12h4l3-8 4 16 3-8h4",
  bulk: "M12 3l9 5-9 5-9-5zM3 13l9 5 9-5",
  settings: "M4 7h10M18 7h2M4 17h2M10 17h10M16 5v4M8 15v4",
  audit: "M6 3h9l4 4v14H6zM9 12h7M9 16h7M9 8h3",
  plus: "M12 5v14M5 12h14",
  copy: "M9 9h11v11H9zM5 15H4V4h11v1",
  check: "M5 13l4 4L19 7",
  cross: "M6 6l12 12M18 6L6 18",
  play: "M7 4l13 8-13 8z",
  pause: "M8 5v14M16 5v14",
  sun: "M12 8a4 4 0 110 8 4 4 0 010-8zM12 2v2M12 20v2M2 12h2M20 12h2M5 5l1 1M18 18l1 1M19 5l-1 1M6 18l-1 1",
  moon: "M20 14A8 8 0 0110 4a8 8 0 1010 10z",
  menu: "M4 6h16M4 12h16M4 18h16",
  help: "M9 9a3 3 0 115 2c-1 1-2 1-2 3M12 18v.5M12 2a10 10 0 110 20 10 10 0 010-20z",
  alert: "M12 3l10 18H2zM12 10v5M12 18v.5",
  right: "M9 5l7 7-7 7",
  out: "M15 4h5v16h-5M4 12h11M11 8l4 4-4 4",
} as const;

export type IconName = keyof typeof PATHS;

export const Icon = ({ name }: { name: IconName }) => (
  <svg class="icon" viewBox="0 0 24 24" aria-hidden="true" focusable="false">
    <path d={PATHS[name]} />
  </svg>
);

export const Bird = () => (
  <svg class="bird" viewBox="0 0 32 32" aria-hidden="true" focusable="false">
    <rect width="32" height="32" rx="8" />
    <path d="M7 20c5 1 7-1 9-5 1-3 4-5 8-4l2 1-3 1c-1 7-5 10-10 10-3 0-5-1-6-3z" />
  </svg>
);
