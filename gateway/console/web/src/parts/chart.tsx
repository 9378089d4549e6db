/** Lines over time, by uPlot, in the colours of the theme. A table of the same numbers is there for screen readers. */

import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { theme } from "../shell/theme";
import { short } from "../model/format";

export interface Line {
  label: string;
  color: string; // a custom property
  values: readonly number[];
  isFilled?: boolean;
}

interface ChartProps {
  label: string;
  times: readonly number[]; // seconds
  lines: readonly Line[];
  height?: number;
}

const CLOCK = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit" });

const css = (name: string): string => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

export function Chart({ label, times, lines, height = 200 }: ChartProps) {
  const holder = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const shownTheme = theme.use();
  const data = [times, ...lines.map((line) => line.values)] as unknown as uPlot.AlignedData;
  const latest = useRef(data);
  latest.current = data;
  useEffect(() => {
    const element = holder.current;
    if (!element) return undefined;
    const grid = { stroke: css("--line"), width: 1 };
    const axis = { stroke: css("--faint"), grid, ticks: { show: false }, font: "11px system-ui" };
    const made = new uPlot(
      {
        width: element.clientWidth,
        height,
        padding: [8, 8, 0, 0],
        cursor: { y: false, points: { size: 6 } },
        legend: { live: true },
        axes: [{ ...axis, values: (_, ticks) => ticks.map((tick) => CLOCK.format(tick * 1000)) }, { ...axis, size: 44, values: (_, ticks) => ticks.map((tick) => (tick === null ? "" : short(tick))) }],
        scales: { y: { range: (_, __, max) => [0, Math.max(1, max * 1.1)] } },
        series: [
          { value: (_: uPlot, value: number | null) => (value === null ? "–" : CLOCK.format(value * 1000)) },
          ...lines.map((line) => ({
            label: line.label,
            stroke: css(line.color),
            width: 1.75,
            points: { show: false },
            ...(line.isFilled ? { fill: `${css(line.color)}22` } : {}),
            value: (_: uPlot, value: number | null) => (value === null ? "–" : short(value)),
          })),
        ],
      },
      latest.current,
      element,
    );
    plot.current = made;
    const observer = new ResizeObserver(() => made.setSize({ width: element.clientWidth, height }));
    observer.observe(element);
    return () => {
      observer.disconnect();
      made.destroy();
      plot.current = null;
    };
  }, [shownTheme, height, lines.map((line) => line.label).join()]);
  useEffect(() => plot.current?.setData(data), [data]);
  const sums = lines.map((line) => `${line.label} ${short(line.values.reduce((sum, one) => sum + one, 0))}`);
  return <div class="chart" ref={holder} role="img" aria-label={`${label}: ${sums.join(", ")}`} />;
}

/** A line without axes, as one SVG path. */
export function Spark({ values, label }: { values: readonly number[]; label: string }) {
  const most = Math.max(1, ...values);
  const step = 100 / Math.max(1, values.length - 1);
  const points = values.map((value, at) => `${(at * step).toFixed(1)},${(23 - (22 * value) / most).toFixed(1)}`);
  return (
    <svg class="spark" viewBox="0 0 100 24" preserveAspectRatio="none" role="img" aria-label={label}>
      <polyline points={points.join(" ")} />
    </svg>
  );
}
