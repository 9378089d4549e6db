/** Which rows of a long table are near the window. Pure. */

const SPARE = 15;

export function windowOf(top: number, height: number, row: number, count: number): readonly [number, number] {
  const first = Math.floor(-top / row) - SPARE;
  const last = Math.ceil((height - top) / row) + SPARE;
  // Steps of five: a redraw for each pixel of scrolling would be wasted.
  const from = Math.max(0, Math.min(count, Math.floor(first / 5) * 5));
  return [from, Math.max(from, Math.min(count, Math.ceil(last / 5) * 5))];
}
