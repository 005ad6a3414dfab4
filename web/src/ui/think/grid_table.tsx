// SPDX-License-Identifier: Apache-2.0
/**
 * grid_table.tsx - a table in which one cell is looked at: by a click, or by the arrow keys after
 * one Tab. Every picture of this view is such a grid (layers by heads, depths by positions), so
 * that a keyboard and a screen reader get all of them in the same way.
 *
 * The table keeps the focus and names its cell by aria-activedescendant: a thousand cells cost no
 * focus management.
 */
import type { ComponentChildren, CSSProperties } from 'preact';
import { useEffect, useId, useRef } from 'preact/hooks';
import { keys } from '../shortcuts';

export interface CellPlace {
  row: number;
  col: number;
}

export interface GridTableProps {
  label: string;
  rows: number;
  cols: number;
  /** Heads of the rows and columns, and the corner above the row heads. */
  rowHead: (row: number) => ComponentChildren;
  colHead: (col: number) => ComponentChildren;
  corner?: ComponentChildren;
  cell: (row: number, col: number) => ComponentChildren;
  /** What a screen reader says of a cell. */
  cellName: (row: number, col: number) => string;
  cellClass?: (row: number, col: number) => string;
  cellStyle?: (row: number, col: number) => CSSProperties;
  selected: CellPlace | null;
  onSelect: (place: CellPlace) => void;
  onHover?: (place: CellPlace | null) => void;
  class?: string;
}

function clamp(value: number, count: number): number {
  return Math.min(count - 1, Math.max(0, value));
}

/** The cell that an event happened in, from the ids of the cells. */
function placeOf(target: EventTarget | null): CellPlace | null {
  const cell = target instanceof Element ? target.closest('[data-cell]') : null;
  const [row, col] = cell?.getAttribute('data-cell')?.split(' ') ?? [];
  return row === undefined ? null : { row: Number(row), col: Number(col) };
}

export function GridTable(p: GridTableProps) {
  const id = useId();
  const table = useRef<HTMLTableElement>(null);
  const { selected } = p;
  const cellId = (row: number, col: number) => `${id}-${row}-${col}`;

  // The selected cell is kept in sight inside its own scroller, never by scrolling the page.
  useEffect(() => {
    const scroller = table.current?.parentElement;
    const cell = selected && document.getElementById(cellId(selected.row, selected.col));
    if (!scroller || !cell) return;
    const a = scroller.getBoundingClientRect();
    const b = cell.getBoundingClientRect();
    const head = table.current?.querySelector('th')?.getBoundingClientRect().width ?? 0;
    if (b.left < a.left + head) scroller.scrollLeft += b.left - a.left - head;
    else if (b.right > a.right) scroller.scrollLeft += b.right - a.right;
  }, [selected?.row, selected?.col]);

  const at = selected ?? { row: 0, col: 0 };
  const go = (to: Partial<CellPlace>) => {
    const next = { ...at, ...to };
    p.onSelect({ row: clamp(next.row, p.rows), col: clamp(next.col, p.cols) });
  };
  return (
    <div class="think-scroll">
      <table
        ref={table}
        role="grid"
        class={p.class ? `think-grid ${p.class}` : 'think-grid'}
        aria-label={p.label}
        tabIndex={0}
        aria-activedescendant={selected ? cellId(selected.row, selected.col) : undefined}
        onFocus={() => {
          if (!selected) p.onSelect({ row: 0, col: 0 });
        }}
        onKeyDown={keys('picture', {
          up: () => go({ row: at.row - 1 }),
          down: () => go({ row: at.row + 1 }),
          left: () => go({ col: at.col - 1 }),
          right: () => go({ col: at.col + 1 }),
          first: () => go({ col: 0 }),
          last: () => go({ col: p.cols - 1 }),
          top: () => go({ row: 0 }),
          bottom: () => go({ row: p.rows - 1 }),
        })}
        onClick={(e) => {
          const place = placeOf(e.target);
          if (place) p.onSelect(place);
        }}
        onPointerOver={p.onHover && ((e) => p.onHover?.(placeOf(e.target)))}
        onPointerLeave={p.onHover && (() => p.onHover?.(null))}
      >
        <thead>
          <tr>
            <td>{p.corner}</td>
            {Array.from({ length: p.cols }, (_, col) => (
              <th key={col} scope="col">
                {p.colHead(col)}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {Array.from({ length: p.rows }, (_, row) => (
            <tr key={row}>
              <th scope="row">{p.rowHead(row)}</th>
              {Array.from({ length: p.cols }, (_, col) => {
                const on = selected?.row === row && selected.col === col;
                return (
                  <td
                    key={col}
                    id={cellId(row, col)}
                    data-cell={`${row} ${col}`}
                    aria-selected={on}
                    class={p.cellClass?.(row, col)}
                    style={p.cellStyle?.(row, col)}
                  >
                    <span aria-hidden="true">{p.cell(row, col)}</span>
                    <span class="unseen">{p.cellName(row, col)}</span>
                  </td>
                );
              })}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
