// SPDX-License-Identifier: Apache-2.0
// The table of host × case as one page to look at: everything is in the file itself, nothing is fetched, and it reads in
// a dark room as well as in a light one.

import {
  type Case,
  type Cell,
  countsInWords,
  type Figure,
  forcedInWords,
  forcedWishMs,
  inWords,
  isLate,
  type Results,
} from "./table.ts";

/** The whole page, for any browser, without a network. */
export function resultsPage(results: Results): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Host × case: ${results.counts.passed} passed, ${results.counts.failed} failed</title>
<style>${style}</style>
</head>
<body>
<header>
<h1>Host × case</h1>
<p>${escaped(countsInWords(results.counts))}</p>
${counters(results)}
<p class="tools">
<label>Filter by words <input id="words" type="search" placeholder="for example: frozen stray" autofocus></label>
<label><input id="bad" type="checkbox"> only what did not pass</label>
<span id="shown" role="status"></span>
</p>
</header>
<main>
<table>
<thead><tr><th scope="col">case</th><th scope="col">kind</th>${results.hosts.map((host) => `<th scope="col">${escaped(host)}</th><th scope="col">by force</th>`).join("")}</tr></thead>
${sections(results)}
</table>
<p>By force: the longest stop with <code>--force</code> that ended everything, from request to verdict; ! where it took ${forcedWishMs / 1_000} s and more.</p>
${figures(results.figures)}
</main>
<footer>made ${escaped(results.made)}${results.full ? ", races tried twenty times" : ""}</footer>
<script>${script}</script>
</body>
</html>
`;
}

function counters({ counts, hosts }: Results): string {
  const boxes: [string | number, string, string][] = [
    [counts.cases, "cases", ""],
    [counts.kinds, "kinds of place", ""],
    [counts.hosts, `kinds of host: ${hosts.join(", ")}`, ""],
    [counts.repetitions, "repetitions at most", ""],
    [counts.passed, "passed", "ok"],
    [counts.failed, "failed", counts.failed > 0 ? "failed" : ""],
    [counts.skipped, "skipped", counts.skipped > 0 ? "skipped" : ""],
    [counts.forcedLate, `of ${counts.forced} by force took 2 s and more`, counts.forcedLate > 0 ? "skipped" : ""],
    [`${(counts.durationMs / 60_000).toFixed(1)} min`, "of tests", ""],
  ];
  const box = ([value, label, kind]: [string | number, string, string]) =>
    `<li class="${kind}"><b>${value}</b> ${escaped(label)}</li>`;
  return `<ul class="counts">${boxes.map(box).join("")}</ul>`;
}

/** One section for each promise: its file, then its cases. */
function sections({ cases, hosts }: Results): string {
  const promises = [...new Set(cases.map(({ promise }) => promise))];
  return promises
    .map((promise) => {
      const own = cases.filter((one) => one.promise === promise);
      const head = `<tr class="promise"><th scope="rowgroup" colspan="${2 * hosts.length + 2}">${escaped(promise)}</th></tr>`;
      return `<tbody>${head}${own.map((one) => row(one, hosts)).join("\n")}</tbody>`;
    })
    .join("\n");
}

function row(one: Case, hosts: string[]): string {
  const words = `${one.promise} ${one.name} ${one.kind} ${Object.keys(one.hosts).join(" ")}`.toLowerCase();
  const cells = hosts.map((host) => cellOf(one.hosts[host])).join("");
  const bad = Object.values(one.hosts).some((cell) => resultOf(cell) !== "ok");
  return `<tr class="case${bad ? " bad" : ""}" data-words="${escaped(words)}"><td>${escaped(one.name)}</td><td>${escaped(one.kind)}</td>${cells}</tr>`;
}

function cellOf(cell: Cell | undefined): string {
  const reasons = (cell?.messages ?? []).map((message) => `<pre>${escaped(message.slice(0, 4_000))}</pre>`).join("");
  const why = reasons === "" ? "" : `<details><summary>why</summary>${reasons}</details>`;
  const late = isLate(cell) ? ' class="skipped"' : "";
  return `<td class="${resultOf(cell)}">${escaped(inWords(cell))}${why}</td><td${late}>${escaped(forcedInWords(cell))}</td>`;
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
:root { color-scheme: light dark; --ink: #1d2125; --paper: #fff; --soft: #f1f3f5; --line: #c9ced4; --ok: #0f6b34; --failed: #b3141e; --skipped: #7a5200; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e8ea; --paper: #15181b; --soft: #22272c; --line: #434a52; --ok: #6fd391; --failed: #ff8f8f; --skipped: #f0c060; } }
body { margin: 0 auto; max-width: 84rem; padding: 1rem; color: var(--ink); background: var(--paper); font: 15px/1.45 system-ui, sans-serif; }
h1 { margin: 0; font-size: 1.4rem; }
.counts { display: flex; flex-wrap: wrap; gap: .5rem; margin: .8rem 0; padding: 0; list-style: none; }
.counts li { padding: .35rem .7rem; border: 1px solid var(--line); border-radius: .4rem; background: var(--soft); }
.counts b { font-size: 1.15rem; }
.tools { display: flex; flex-wrap: wrap; gap: 1.2rem; align-items: center; }
input[type=search] { width: 20rem; max-width: 60vw; padding: .3rem .5rem; font: inherit; }
::placeholder { color: var(--ink); opacity: .75; }
table { width: 100%; border-collapse: collapse; }
th, td { padding: .25rem .5rem; border-bottom: 1px solid var(--line); text-align: left; vertical-align: top; overflow-wrap: anywhere; }
thead th { position: sticky; top: 0; background: var(--paper); }
.promise th { padding-top: 1rem; background: var(--soft); font-family: ui-monospace, monospace; }
td:nth-child(n+2) { white-space: nowrap; }
.figures td { white-space: normal; }
.ok { color: var(--ok); }
.failed { color: var(--failed); font-weight: 600; }
.skipped { color: var(--skipped); }
.failed b, .ok b { color: inherit; }
pre { max-width: 60rem; margin: .3rem 0; padding: .5rem; overflow-x: auto; white-space: pre-wrap; background: var(--soft); color: var(--ink); font-weight: 400; }
footer { margin-top: 2rem; opacity: .8; }
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
    if (fits) shown++;
  }
  for (const body of document.querySelectorAll("main > table > tbody")) body.hidden = !body.querySelector("tr.case:not([hidden])");
  document.getElementById("shown").textContent = shown + " of " + rows.length + " rows";
}
words.addEventListener("input", filter);
bad.addEventListener("change", filter);
filter();
`;
