// SPDX-License-Identifier: Apache-2.0
// The rows of the table and the report: one per unit, from the cgroup paths that the census read. Rows decide nothing.

import type { Census, Found, Scope } from "./census.ts";
import { isInSlice, type Slice } from "./slice.ts";

export interface Row {
  /** Identifies the row within one run: the cgroup path of its unit. */
  key: string;
  /** Name to show; chosen by somebody else, so printable() before it is shown. */
  unit: string;
  /** Agent sessions have a name of the session form. Plumbing is the rest of the slice. Strays are outside it. */
  kind: "session" | "plumbing" | "stray";
  /** Whose unit it is: PID 1's, or the account's own manager's. */
  owner: "system" | "account";
  processes: Found[];
  /** Where the session works; see attribution.ts. */
  project: Project;
}

export interface Project {
  path: string | undefined;
  /** The account's word (a link it chose), not PID 1's record. */
  byAccount: boolean;
}

/** Name of the row of processes whose cgroup path was not read. */
export const notRead = "(not read)";

const sessionForm = /^ai-tools-[a-z0-9-]+-[0-9]+\.service$/;

/** Rows of a census: agent sessions first, then plumbing, then strays, each by name. */
export function rowsOf(scope: Scope, census: Census): Row[] {
  const rows = new Map<string, Row>();
  for (const found of [...census.alive, ...census.held]) {
    const place = placeOf(scope.slice, scope.identity.uid, found.cgroup);
    const row = rows.get(place.key) ?? { ...place, processes: [], project: { path: undefined, byAccount: false } };
    row.processes.push(found);
    rows.set(place.key, row);
  }
  const rank = { session: 0, plumbing: 1, stray: 2 };
  return [...rows.values()].sort(
    (a, b) => rank[a.kind] - rank[b.kind] || (a.unit < b.unit ? -1 : a.unit > b.unit ? 1 : 0),
  );
}

/** The unit that a cgroup path belongs to: the first `.service` or `.scope` below slices; the manager is descended into. */
export function placeOf(
  slice: Slice,
  uid: number,
  cgroup: string | undefined,
): Pick<Row, "key" | "unit" | "kind" | "owner"> {
  if (cgroup === undefined) return { key: notRead, unit: notRead, kind: "plumbing", owner: "account" };
  const manager = `${slice.path}/user@${uid}.service`;
  const inManager = cgroup === manager || cgroup.startsWith(`${manager}/`);
  const from = inManager ? manager : "";
  const rest = cgroup.slice(from.length).split("/").slice(1);
  const at = rest.findIndex((name) => name.endsWith(".service") || name.endsWith(".scope"));
  const isUnit = at >= 0 && rest.slice(0, at).every((name) => name.endsWith(".slice"));
  const key = isUnit ? [from, ...rest.slice(0, at + 1)].join("/") : cgroup;
  const unit = isUnit ? (rest[at] as string) : cgroup;
  const kind = !isInSlice(slice, cgroup) ? "stray" : sessionForm.test(unit) ? "session" : "plumbing";
  return { key, unit, kind, owner: inManager ? "account" : "system" };
}
