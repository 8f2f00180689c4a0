// SPDX-License-Identifier: Apache-2.0
// The table of host × case as one page to look at: everything is in the file itself, nothing is fetched, and it reads in
// a dark room as well as in a light one.

import { createHash } from "node:crypto";
import {
  type Case,
  type Cell,
  type Figure,
  forcedInWords,
  forcedWishMs,
  inWords,
  isLate,
  type Results,
} from "./table.ts";

/** The whole page, for any browser, without a network. */
export function resultsPage(results: Results): string {
  const { counts, hosts, full, made } = results;
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-${scriptHash}'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Host × case: ${counts.passed} passed, ${counts.failed} failed</title>
<style>${style}</style>
</head>
<body>
<header>
<div class="verdict ${counts.failed > 0 ? "failed" : counts.passed > 0 ? "ok" : "skipped"}">
<h1>${escaped(headline(results))}</h1>
<p>${counts.passed} tests passed on ${hosts.length === 1 ? "one kind of host" : `${hosts.length} kinds of host`}: ${escaped(hosts.join(", "))}${full ? "; races were tried twenty times" : ""}.</p>
</div>
${counters(results)}
<p class="tools">
<label>Filter by words <input id="words" type="search" placeholder="for example: frozen stray"></label>
<label><input id="bad" type="checkbox"> only what did not pass</label>
<span id="shown" role="status"></span>
</p>
</header>
<main>
<p class="quiet">Each case on each kind of host: how it came out, how many of its rounds passed where there were several, and the seconds of all rounds.
"Force" is the longest stop with <code>--force</code> that ended everything, from request to verdict; ! where it took ${forcedWishMs / 1_000} s and more.</p>
<table class="cases">
<thead><tr><th scope="col">case</th>${hosts.map((host) => headOf(host, results)).join("")}</tr></thead>
${sections(results)}
</table>
${figures(results.figures)}
</main>
<footer>made ${escaped(made)}</footer>
<script>${script}</script>
</body>
</html>
`;
}

function headline({ counts }: Results): string {
  if (counts.failed > 0) return `✗ ${counts.failed} FAILED`;
  return counts.passed > 0 ? "✓ Nothing failed" : "○ Nothing was tried";
}

function counters({ counts }: Results): string {
  const boxes: [string | number, string, string][] = [
    [counts.cases, "cases", ""],
    [counts.kinds, "kinds of place", ""],
    [counts.repetitions, "repetitions at most", ""],
    [counts.skipped, "skipped", counts.skipped > 0 ? "skipped" : ""],
    [counts.forcedLate, `of ${counts.forced} by force took 2 s and more`, counts.forcedLate > 0 ? "skipped" : ""],
    [`${(counts.durationMs / 60_000).toFixed(1)} min`, "of tests", ""],
  ];
  const box = ([value, label, kind]: [string | number, string, string]) =>
    `<li class="${kind}"><b>${value}</b> ${escaped(label)}</li>`;
  return `<ul class="counts">${boxes.map(box).join("")}</ul>`;
}

/** A kind of host with its own counts. */
function headOf(host: string, { cases }: Results): string {
  const cells = cases.map((one) => one.hosts[host]);
  const of = (wanted: string) => cells.filter((cell) => resultOf(cell) === wanted).length;
  const parts = [
    `${of("ok")} ok`,
    ...(of("failed") > 0 ? [`${of("failed")} failed`] : []),
    ...(of("skipped") > 0 ? [`${of("skipped")} skipped`] : []),
  ];
  return `<th scope="col">${escaped(host)}<span class="small">${parts.join(", ")}</span></th>`;
}

/** One section for each promise: its file, then its cases. */
function sections({ cases, hosts }: Results): string {
  const promises = [...new Set(cases.map(({ promise }) => promise))];
  return promises
    .map((promise) => {
      const own = cases.filter((one) => one.promise === promise);
      const head = `<tr class="promise"><th scope="rowgroup" colspan="${hosts.length + 1}">${escaped(promise)}</th></tr>`;
      return `<tbody>${head}${own.map((one) => row(one, hosts)).join("\n")}</tbody>`;
    })
    .join("\n");
}

function row(one: Case, hosts: string[]): string {
  const words = `${one.promise} ${one.name} ${one.kind} ${Object.keys(one.hosts).join(" ")}`.toLowerCase();
  const cells = hosts.map((host) => cellOf(one.hosts[host], host)).join("");
  const bad = Object.values(one.hosts).some((cell) => resultOf(cell) !== "ok");
  const data = `data-words="${escaped(words)}"`;
  const kind = one.kind === "" ? "" : `<span class="small">${escaped(one.kind)}</span>`;
  const name = escaped(one.name).replaceAll(" &gt; ", ' <span class="quiet">›</span> ');
  return `<tr class="case${bad ? " bad" : ""}" ${data}><th scope="row">${name}${kind}</th>${cells}</tr>${reasons(one, hosts)}`;
}

function cellOf(cell: Cell | undefined, host: string): string {
  const result = resultOf(cell);
  const sign = { ok: "✓ ", failed: "✗ ", skipped: "○ " }[result] ?? "";
  const forced = forcedInWords(cell);
  const force =
    forced === "" ? "" : `<span class="small${isLate(cell) ? " skipped" : ""}">force ${escaped(forced)}</span>`;
  return `<td class="${result}" data-host="${escaped(host)}">${sign}${escaped(inWords(cell))}${force}</td>`;
}

/** Why a case failed, over the whole width below it. */
function reasons({ hosts: cells }: Case, hosts: string[]): string {
  const told = hosts.flatMap((host) => (cells[host]?.messages ?? []).map((message) => ({ host, message })));
  if (told.length === 0) return "";
  const texts = told.map(
    ({ host, message }) => `<p><strong>${escaped(host)}</strong></p><pre>${escaped(message.slice(0, 4_000))}</pre>`,
  );
  return `<tr class="why"><td colspan="${hosts.length + 1}"><details open><summary>why</summary>${texts.join("")}</details></td></tr>`;
}

function resultOf(cell: Cell | undefined): string {
  if (cell === undefined) return "none";
  if (cell.failed > 0) return "failed";
  return cell.passed > 0 && cell.skipped === 0 ? "ok" : "skipped";
}

function figures(all: Figure[]): string {
  if (all.length === 0) return "";
  const rows = all.map(({ host, test, what, ...values }) => {
    const told = Object.entries(values).map(
      ([name, value]) => `${name} ${typeof value === "string" ? value : JSON.stringify(value)}`,
    );
    const cells = [test ?? "", what, host, told.join(", ")].map((text) => `<td>${escaped(text)}</td>`).join("");
    return `<tr class="case" data-words="${escaped(`${test ?? ""} ${what} ${host}`.toLowerCase())}">${cells}</tr>`;
  });
  return `<details class="figures"><summary>Figures that tests told of themselves: ${all.length}</summary>
<table><thead><tr><th scope="col">case</th><th scope="col">what</th><th scope="col">host</th><th scope="col">figures</th></tr></thead><tbody>
${rows.join("\n")}
</tbody></table></details>`;
}

/** Names and messages hold what hostile sessions wrote. */
function escaped(text: string): string {
  const entities: Record<string, string> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" };
  return text.replace(/[&<>"']/g, (character) => entities[character] ?? character);
}

const style = `
:root { color-scheme: light dark; --ink: #1b1f24; --quiet: #59626d; --paper: #fff; --soft: #f3f5f7; --line: #d3d8de; --ok: #0f6b34; --failed: #b3141e; --skipped: #7a5200; }
@media (prefers-color-scheme: dark) { :root { --ink: #e7eaed; --quiet: #a3adb8; --paper: #14171a; --soft: #1f2429; --line: #3a424a; --ok: #6fd391; --failed: #ff8f8f; --skipped: #f0c060; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 96rem; padding: 1.2rem; color: var(--ink); background: var(--paper); font: 15px/1.45 system-ui, sans-serif; }
h1 { margin: 0; font-size: 1.6rem; line-height: 1.2; }
.verdict { padding: 1rem 1.2rem; border: 2px solid; border-left-width: .7rem; border-radius: .4rem; background: var(--soft); }
.verdict p { margin: .4rem 0 0; color: var(--ink); font-weight: 400; }
.counts { display: flex; flex-wrap: wrap; gap: .5rem; margin: .8rem 0; padding: 0; list-style: none; }
.counts li { padding: .3rem .7rem; border: 1px solid var(--line); border-radius: .4rem; }
.tools { display: flex; flex-wrap: wrap; gap: .6rem 1.2rem; align-items: center; }
input[type=search] { width: 20rem; max-width: 100%; padding: .3rem .5rem; font: inherit; }
::placeholder { color: var(--quiet); opacity: 1; }
.quiet, .small { color: var(--quiet); }
.small { display: block; font-size: .82rem; font-weight: 400; }
.small.skipped { color: var(--skipped); }
table { width: 100%; border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .25rem .5rem; border-bottom: 1px solid var(--line); text-align: left; vertical-align: top; overflow-wrap: anywhere; }
th[scope=row] { font-weight: 400; }
.cases { table-layout: fixed; }
.cases thead th:not(:first-child) { width: 8.6rem; }
thead th { position: sticky; top: 0; z-index: 1; background: var(--paper); vertical-align: bottom; }
.promise th { padding-top: 1rem; background: var(--soft); font-family: ui-monospace, monospace; }
.ok { color: var(--ok); }
.failed { color: var(--failed); font-weight: 600; }
.skipped { color: var(--skipped); }
.none { color: var(--quiet); }
pre { margin: .3rem 0; padding: .5rem; overflow-x: auto; white-space: pre-wrap; background: var(--soft); color: var(--ink); font: 13px/1.45 ui-monospace, monospace; }
summary { cursor: pointer; }
.why p { margin: .3rem 0; }
code { white-space: nowrap; }
footer { margin-top: 2rem; color: var(--quiet); }
:focus-visible { outline: 3px solid #3b82f6; outline-offset: 2px; }
@media screen and (max-width: 60rem) {
  .cases, .cases tbody, .cases tr, .cases th, .cases td { display: block; border: 0; }
  .cases tr.case { padding: .4rem 0; border-bottom: 1px solid var(--line); }
  .cases thead { display: none; }
  .cases td[data-host] { display: inline-block; padding: .1rem .5rem; }
  .cases td[data-host]::before { content: attr(data-host) ": "; color: var(--ink); font-weight: 400; }
  .cases td[data-host] .small { display: inline; margin-left: .4rem; }
  .cases td.none { display: none; }
}
[hidden], .cases tr[hidden], .cases tbody[hidden] { display: none; }
@media print {
  :root { --ink: #000; --quiet: #444; --paper: #fff; --soft: #fff; --line: #bbb; --ok: #0f6b34; --failed: #b3141e; --skipped: #7a5200; }
  body { max-width: none; padding: 0; font-size: 9pt; }
  .tools { display: none; }
  thead th { position: static; }
  tr { break-inside: avoid; }
  .cases thead th:not(:first-child) { width: 5.6rem; }
}
`;

const script = `
const words = document.getElementById("words");
const bad = document.getElementById("bad");
const rows = [...document.querySelectorAll("tr.case")];
function filter() {
  const wanted = words.value.toLowerCase().split(/\\s+/).filter(Boolean);
  let shown = 0;
  for (const row of rows) {
    const fits = wanted.every((word) => row.dataset.words.includes(word)) && (!bad.checked || row.classList.contains("bad"));
    row.hidden = !fits;
    if (row.nextElementSibling?.classList.contains("why")) row.nextElementSibling.hidden = !fits;
    if (fits) shown++;
  }
  for (const body of document.querySelectorAll("main > table > tbody")) body.hidden = !body.querySelector("tr.case:not([hidden])");
  document.getElementById("shown").textContent = shown + " of " + rows.length + " rows";
}
words.addEventListener("input", filter);
bad.addEventListener("change", filter);
filter();
`;

/** Nothing else may run in the page. */
const scriptHash = createHash("sha256").update(script).digest("base64");
