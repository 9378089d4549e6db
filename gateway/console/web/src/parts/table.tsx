/** A table of any length: only the rows near the window exist. Rows have one height, so the rest is two spacers. */

import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { windowOf } from "../model/window";
import { s } from "../strings";

export interface Column<T> {
  key: string;
  title: string;
  cell: (row: T) => ComponentChildren;
  sort?: (row: T) => number | string;
  isNumber?: boolean;
  isWide?: boolean;
  rank?: 2 | 3; // hidden on small screens: 3 first
}

interface TableProps<T> {
  label: string;
  rows: readonly T[];
  columns: readonly Column<T>[];
  idOf: (row: T) => string;
  sortedBy?: { key: string; isDown: boolean };
  onSort?: (key: string) => void;
  selected?: ReadonlySet<string>;
  onSelect?: (id: string, isRange: boolean) => void;
  onSelectAll?: (isOn: boolean) => void;
  onOpen?: (row: T) => void;
  cursor?: number;
}

const ROW_PX = 40;

export function Table<T>(props: TableProps<T>) {
  const { label, rows, columns, idOf, sortedBy, onSort, selected, onSelect, onSelectAll, onOpen, cursor } = props;
  const body = useRef<HTMLTableSectionElement>(null);
  const [range, setRange] = useState<readonly [number, number]>([0, 60]);
  useEffect(() => {
    const look = () => {
      const top = body.current?.getBoundingClientRect().top ?? 0;
      const next = windowOf(top, window.innerHeight, ROW_PX, rows.length);
      setRange((now) => (now[0] === next[0] && now[1] === next[1] ? now : next));
    };
    look();
    window.addEventListener("scroll", look, { passive: true });
    window.addEventListener("resize", look);
    return () => {
      window.removeEventListener("scroll", look);
      window.removeEventListener("resize", look);
    };
  }, [rows.length]);
  useEffect(() => {
    body.current?.querySelector("tr.cursor")?.scrollIntoView({ block: "nearest" });
  }, [cursor]);
  const [first, last] = range;
  const isAll = selected !== undefined && rows.length > 0 && rows.every((row) => selected.has(idOf(row)));
  const width = columns.length + (onSelect ? 1 : 0);
  return (
    <div class="table" tabIndex={0} role="region" aria-label={label}>
      <table aria-rowcount={rows.length + 1}>
        <thead>
          <tr>
            {onSelect && (
              <th class="pick">
                <input
                  type="checkbox"
                  aria-label={s.selectAll}
                  checked={isAll}
                  onChange={(event) => onSelectAll?.(event.currentTarget.checked)}
                />
              </th>
            )}
            {columns.map((column) => {
              const isSorted = sortedBy?.key === column.key;
              return (
                <th
                  key={column.key}
                  scope="col"
                  class={classOf(column)}
                  {...(isSorted ? { "aria-sort": sortedBy.isDown ? ("descending" as const) : ("ascending" as const) } : {})}
                >
                  {column.sort && onSort ? (
                    <button class="plain" onClick={() => onSort(column.key)}>
                      {column.title}
                      <span aria-hidden="true">{isSorted ? (sortedBy.isDown ? " ↓" : " ↑") : ""}</span>
                    </button>
                  ) : (
                    column.title
                  )}
                </th>
              );
            })}
          </tr>
        </thead>
        <tbody ref={body}>
          <Spacer rows={first} width={width} />
          {rows.slice(first, last).map((row, offset) => {
            const id = idOf(row);
            const isSelected = selected?.has(id) ?? false;
            return (
              <tr
                key={id}
                aria-rowindex={first + offset + 2}
                class={`${isSelected ? "selected" : ""} ${cursor === first + offset ? "cursor" : ""}`}
                onDblClick={() => onOpen?.(row)}
              >
                {onSelect && (
                  <td class="pick">
                    <input
                      type="checkbox"
                      aria-label={s.select(id)}
                      checked={isSelected}
                      onClick={(event) => onSelect(id, event.shiftKey)}
                    />
                  </td>
                )}
                {columns.map((column) => (
                  <td key={column.key} class={classOf(column)}>
                    {column.cell(row)}
                  </td>
                ))}
              </tr>
            );
          })}
          <Spacer rows={Math.max(0, rows.length - last)} width={width} />
        </tbody>
      </table>
    </div>
  );
}

const classOf = <T,>(column: Column<T>): string =>
  [column.isNumber && "number", column.isWide && "wide", column.rank && `rank-${column.rank}`].filter(Boolean).join(" ");

/** As high as the rows that are left out; its height is set on the element, which a strict policy allows. */
function Spacer({ rows, width }: { rows: number; width: number }) {
  if (rows === 0) return null;
  return (
    <tr aria-hidden="true" class="spacer">
      <td colSpan={width} style={{ height: `${rows * ROW_PX}px` }} />
    </tr>
  );
}

export function sorted<T>(rows: readonly T[], columns: readonly Column<T>[], key: string, isDown: boolean): T[] {
  const by = columns.find((column) => column.key === key)?.sort;
  if (!by) return [...rows];
  const sign = isDown ? -1 : 1;
  return [...rows].sort((one, other) => {
    const [a, b] = [by(one), by(other)];
    return a < b ? -sign : a > b ? sign : 0;
  });
}
