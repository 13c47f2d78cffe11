/** What every panel is made of: a state for each answer, and a table whose rows can open. */
import { useNavigate, useSearch } from "@tanstack/react-router";
import { type ComponentType, type ReactNode, useId } from "react";
import { Icon } from "@/components/Icon";
import { Notice, Problem } from "@/components/Problem";
import { Skeleton } from "@/components/Skeleton";
import { toggled } from "@/models/selection";
import { t } from "./text";

export const EVERY = 5_000;

type Answer<T> = { data: T | undefined; error: unknown; isPending: boolean; refetch: () => unknown };

/** An old answer stays readable while a new one cannot be had. */
export function Answered<T>({ query, children }: { query: Answer<T>; children: (data: T) => ReactNode }) {
  if (query.data !== undefined) return children(query.data);
  if (query.isPending) return <Skeleton rows={4} />;
  return <Problem error={query.error} onRetry={() => void query.refetch()} />;
}

export type Column<T> = { label: string; cell: (row: T) => ReactNode; isNumber?: boolean };
type TableProps<T> = {
  label: string;
  rows: readonly T[];
  columns: readonly Column<T>[];
  keyOf: (row: T) => string;
  empty: string;
  hint?: string;
  /** Where a filter is the reason. */
  onClear?: (() => void) | undefined;
  /** Buttons of a row. */
  Actions?: ComponentType<{ row: T }>;
  /** Read where the row is opened. */
  More?: ComponentType<{ row: T }>;
  /** Rows can be chosen, by their keys. `nameOf`: the row for those who hear the box alone. */
  choice?: { chosen: ReadonlySet<string>; onChoose: (chosen: ReadonlySet<string>) => void; nameOf: (row: T) => string } | undefined;
};

export function Table<T>(props: TableProps<T>) {
  const { label, rows, columns, keyOf, empty, hint, onClear, Actions, choice } = props;
  const id = useId();
  const all = rows.every((row) => choice?.chosen.has(keyOf(row)));
  if (rows.length === 0) {
    return (
      <div className="panel">
        <Notice title={empty} hint={hint}>
          {onClear ? (
            <button type="button" className="button" onClick={onClear}>
              {t("clear")}
            </button>
          ) : null}
        </Notice>
      </div>
    );
  }
  return (
    // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- what scrolls must be reached by keys
    <section className="table-scroll panel" tabIndex={0} aria-labelledby={id}>
      <table className="ops-table">
        <caption id={id} className="away">
          {label}
        </caption>
        <thead>
          <tr>
            {choice ? (
              <th className="pick">
                <input type="checkbox" aria-label={t("selectAll")} checked={all} onChange={() => choice.onChoose(new Set(all ? [] : rows.map(keyOf)))} />
              </th>
            ) : null}
            {columns.map((column) => (
              <th key={column.label} scope="col" className={column.isNumber ? "number" : undefined}>
                {column.label}
              </th>
            ))}
            {Actions ? (
              <th scope="col">
                <span className="away">{t("actions")}</span>
              </th>
            ) : null}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <Row key={keyOf(row)} row={row} {...props} />
          ))}
        </tbody>
      </table>
    </section>
  );
}

function Row<T>({ row, columns, keyOf, Actions, More, choice }: TableProps<T> & { row: T }) {
  const { row: open } = useSearch({ strict: false });
  const isOpen = More !== undefined && open === keyOf(row);
  const [first, ...rest] = columns;
  return (
    <>
      <tr className={isOpen ? "open" : undefined}>
        {choice ? (
          <td className="pick">
            <input type="checkbox" aria-label={t("selectOne", { name: choice.nameOf(row) })} checked={choice.chosen.has(keyOf(row))} onChange={() => choice.onChoose(toggled(choice.chosen, keyOf(row)))} />
          </td>
        ) : null}
        <th scope="row">{More && first ? <Opener name={keyOf(row)} isOpen={isOpen}>{first.cell(row)}</Opener> : first?.cell(row)}</th>
        {rest.map((column) => (
          <td key={column.label} data-label={column.label} className={column.isNumber ? "number" : undefined}>
            {column.cell(row)}
          </td>
        ))}
        {Actions ? <td className="row-actions"><Actions row={row} /></td> : null}
      </tr>
      {isOpen ? (
        <tr className="more">
          <td colSpan={columns.length + (Actions ? 1 : 0) + (choice ? 1 : 0)}><More row={row} /></td>
        </tr>
      ) : null}
    </>
  );
}

/** The open row is in the address. */
function Opener({ name, isOpen, children }: { name: string; isOpen: boolean; children: ReactNode }) {
  const navigate = useNavigate();
  const toggle = () => void navigate({ to: ".", search: (old: object) => ({ ...old, row: isOpen ? undefined : name }), replace: true });
  return (
    <button type="button" className={`opener ${isOpen ? "on" : ""}`} aria-expanded={isOpen} onClick={toggle}>
      <Icon name="arrow" />
      {children}
    </button>
  );
}

/** A number with a bar that compares it with the others of its table. */
export function Bar({ value, share }: { value: ReactNode; share: number }) {
  return (
    <span className="bar-cell">
      <span>{value}</span>
      <span className="bar-track" aria-hidden="true">
        <span style={{ width: `${share}%` }} />
      </span>
    </span>
  );
}

/** Nothing to say in this cell. */
export function None() {
  return (
    <span className="muted">
      <span aria-hidden="true">{"–"}</span>
      <span className="away">{t("none")}</span>
    </span>
  );
}
