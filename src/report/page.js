/* page.js - draws the page from the data that stands in it. Charts are SVG with axes and values on hover; behind each stands
 * a table that says the same. No library, nothing from a network. */
"use strict";
(function () {
const data = JSON.parse(document.getElementById("data").textContent);
const runs = data.runs;
/* What another program, or half a file, left is shown as far as it goes. */
for (const r of runs) {
  const s = r.step;
  if (!s) continue;
  for (const key of ["towers", "reasons", "kinds"]) if (!Array.isArray(s[key])) s[key] = [];
  for (const key of ["spans", "memory"]) if (!Array.isArray(s[key]) || !s[key].every(v => v && typeof v === "object")) s[key] = null;
}
const main = document.getElementById("main");

/* ---- words and numbers ---- */

const short = device => device ? device.replace(/^.*\/device:/, "") : "";
const color = i => "var(--run" + i % 10 + ")";
function number(v, digits) {
  if (v === null || v === undefined || !isFinite(v)) return "–";
  const a = Math.abs(v);
  if (v !== 0 && (a < 1e-3 || a >= 1e7)) return v.toExponential((digits || 4) - 2);
  if (Number.isInteger(v)) return v.toLocaleString("en");
  return String(Number(v.toPrecision(digits || 4)));
}
function bytes(v) {
  const units = ["bytes", "KiB", "MiB", "GiB", "TiB"];
  let u = 0;
  while (v >= 1024 && u < 4) { v /= 1024; u++; }
  return (u ? v.toFixed(1) : v) + " " + units[u];
}
function seconds(v) {
  if (v < 1e-3) return (v * 1e6).toFixed(1) + " µs";
  if (v < 1) return (v * 1e3).toFixed(2) + " ms";
  if (v < 120) return v.toFixed(1) + " s";
  const m = Math.floor(v / 60);
  return m < 120 ? m + " min " + Math.round(v % 60) + " s" : Math.floor(m / 60) + " h " + m % 60 + " min";
}
const percent = v => (100 * v).toFixed(1) + " %";

/* ---- elements ---- */

const SVG = "http://www.w3.org/2000/svg";
function make(name, attributes, ...children) {
  const svg = make.svg.has(name);
  const e = svg ? document.createElementNS(SVG, name) : document.createElement(name);
  for (const key in attributes || {}) {
    if (key === "tip") tip(e, attributes.tip);
    else if (attributes[key] !== undefined && attributes[key] !== null) e.setAttribute(key, attributes[key]);
  }
  for (const c of children.flat(3))
    if (c !== null && c !== undefined) e.append(c);
  return e;
}
make.svg = new Set(["svg", "g", "path", "rect", "line", "text", "circle", "polyline", "marker", "defs"]);

const tipBox = document.getElementById("tip");
function showTip(event, text) {
  tipBox.textContent = text;
  tipBox.hidden = false;
  const box = tipBox.getBoundingClientRect();
  const x = event.clientX + 14, y = event.clientY + 14;
  tipBox.style.left = Math.max(4, Math.min(x, innerWidth - box.width - 8)) + "px";
  tipBox.style.top = (y + box.height > innerHeight ? Math.max(4, event.clientY - box.height - 10) : y) + "px";
}
function tip(e, text) {
  e.addEventListener("pointermove", event => showTip(event, typeof text === "function" ? text() : text));
  e.addEventListener("pointerleave", () => { tipBox.hidden = true; });
}

function table(head, rows, numeric) {
  const cell = (tag, v, i) => make(tag, numeric && numeric.includes(i) ? { class: "n" } : {}, v instanceof Node ? v : String(v));
  return make("table", {}, make("thead", {}, make("tr", {}, head.map((h, i) => { const e = cell("th", h, i); e.scope = "col"; return e; }))),
    make("tbody", {}, rows.map(r => make("tr", r.className ? { class: r.className } : {}, r.map((v, i) => cell("td", v, i))))));
}
function behind(title, head, rows, numeric) {
  const holder = make("div"), d = make("details", {}, make("summary", {}, title), holder);
  const fill = () => { if (!holder.firstChild) holder.append(table(head, rows(), numeric)); };
  d.addEventListener("toggle", fill);
  return d;
}
function section(id, title, words) {
  const s = make("section", { id, "aria-labelledby": id + "-title" }, make("h2", { id: id + "-title" }, title), words ? make("p", {}, words) : null);
  main.append(s);
  document.getElementById("contents").append(make("a", { href: "#" + id }, title));
  return s;
}
function legend(entries) {
  return make("div", { class: "legend" }, entries.map(([name, c]) => make("span", { style: "--c:" + c }, name)));
}
function toggles(labels, chosen, change) {
  const buttons = labels.map((l, i) => {
    const b = make("button", { type: "button", "aria-pressed": String(i === chosen) }, l);
    b.addEventListener("click", () => { buttons.forEach((o, k) => o.setAttribute("aria-pressed", String(k === i))); change(i); });
    return b;
  });
  return buttons;
}

/* ---- curves ---- */

function ticks(low, high, count) {
  const span = high - low || 1, raw = span / count, power = Math.pow(10, Math.floor(Math.log10(raw)));
  const step = [1, 2, 2.5, 5, 10].map(f => f * power).find(s => s >= raw - 1e-12) || raw;
  const list = [];
  for (let v = Math.ceil(low / step - 1e-9) * step; v <= high + step * 1e-6; v += step) list.push(Math.abs(v) < step * 1e-9 ? 0 : v);
  return list;
}
function smooth(y, amount) {
  if (!amount) return y;
  let s = 0, w = 0;
  return y.map(v => {
    if (v === null) return null;
    s = amount * s + (1 - amount) * v; w = amount * w + 1 - amount;
    return s / w;
  });
}

/* curves: [{name, color, x, y, low, high}]; options: {title, yTitle, xTitle, log, smoothing, height, zero} */
function chart(curves, o) {
  const W = o.width || 430, H = o.height || 210, L = 56, R = 12, T = 10, B = 38;
  const svg = make("svg", { viewBox: "0 0 " + W + " " + H, role: "img", "aria-label": o.title + ": " + curves.map(c => c.name + " ends at " + number(c.y[c.y.length - 1])).join("; ") });
  const shown = curves.map(c => ({ ...c, s: smooth(c.y, o.smoothing || 0) }));
  const good = v => v !== null && isFinite(v) && (!o.log || v > 0);
  let x0 = Infinity, x1 = -Infinity, y0 = Infinity, y1 = -Infinity;
  for (const c of shown) {
    x0 = Math.min(x0, ...c.x); x1 = Math.max(x1, ...c.x);
    for (const list of o.smoothing ? [c.s] : [c.s, c.low || [], c.high || []])
      for (const v of list) if (good(v)) { y0 = Math.min(y0, v); y1 = Math.max(y1, v); }
  }
  if (!(x1 > x0)) { x0 -= 1; x1 += 1; }
  if (y0 > y1) { y0 = 0; y1 = 1; }
  if (o.log) { y0 = Math.log10(y0); y1 = Math.log10(y1); }
  if (o.zero) y0 = Math.min(0, y0);
  if (!(y1 > y0)) { const d = Math.abs(y0) * 0.1 || 1; y0 -= d; y1 += d; } else if (!o.zero) { const d = (y1 - y0) * 0.05; y0 -= d; y1 += d; } else y1 += (y1 - y0) * 0.05;
  const px = v => L + (v - x0) / (x1 - x0) * (W - L - R), py = v => H - B - ((o.log ? Math.log10(v) : v) - y0) / (y1 - y0) * (H - B - T);
  const yt = o.log ? ticks(y0, y1, 4).map(v => Math.pow(10, v)) : ticks(y0, y1, 4);
  for (const v of yt) svg.append(make("line", { class: "gridline", x1: L, x2: W - R, y1: py(v), y2: py(v) }), make("text", { x: L - 7, y: py(v) + 4, "text-anchor": "end" }, number(v, 3)));
  for (const v of ticks(x0, x1, 6)) svg.append(make("text", { x: px(v), y: H - B + 16, "text-anchor": "middle" }, number(v, 6)));
  svg.append(make("line", { class: "axis", x1: L, x2: W - R, y1: H - B, y2: H - B }),
    make("text", { x: (L + W - R) / 2, y: H - 4, "text-anchor": "middle" }, o.xTitle || "step"),
    make("text", { x: 12, y: T + (H - B - T) / 2, "text-anchor": "middle", transform: "rotate(-90 12 " + (T + (H - B - T) / 2) + ")" }, o.yTitle || ""));
  const path = (xs, ys) => {
    let d = "", open = false;
    ys.forEach((v, i) => { if (!good(v)) { open = false; return; } d += (open ? "L" : "M") + px(xs[i]).toFixed(1) + " " + py(v).toFixed(1); open = true; });
    return d;
  };
  for (const c of shown) {
    if (c.low && c.high && !o.smoothing && c.low.every(good) && c.high.every(good))
      svg.append(make("path", { d: path(c.x, c.high) + "L" + c.x.map((x, i) => px(x).toFixed(1) + " " + py(c.low[i]).toFixed(1)).reverse().join("L") + "Z", fill: c.color, opacity: 0.15 }));
    if (o.smoothing) svg.append(make("path", { d: path(c.x, c.y), fill: "none", stroke: c.color, "stroke-width": 1, opacity: 0.25 }));
    svg.append(make("path", { d: path(c.x, c.s), fill: "none", stroke: c.color, "stroke-width": 2, "stroke-linejoin": "round" }));
    if (c.x.length <= 40) c.x.forEach((x, i) => { if (good(c.s[i])) svg.append(make("circle", { cx: px(x), cy: py(c.s[i]), r: 2.4, fill: c.color })); });
  }
  const rule = make("line", { class: "axis", y1: T, y2: H - B, visibility: "hidden" });
  const area = make("rect", { x: L, y: T, width: W - L - R, height: H - B - T, fill: "transparent" });
  area.addEventListener("pointermove", event => {
    const box = svg.getBoundingClientRect(), at = x0 + ((event.clientX - box.left) * W / box.width - L) / (W - L - R) * (x1 - x0);
    let nearest = null;
    for (const c of shown) for (const x of c.x) if (nearest === null || Math.abs(x - at) < Math.abs(nearest - at)) nearest = x;
    rule.setAttribute("x1", px(nearest)); rule.setAttribute("x2", px(nearest)); rule.setAttribute("visibility", "visible");
    const lines = shown.map(c => {
      let k = 0;
      c.x.forEach((x, i) => { if (Math.abs(x - nearest) < Math.abs(c.x[k] - nearest)) k = i; });
      return c.name + "  " + number(c.y[k]) + (o.smoothing ? "  (smoothed " + number(c.s[k]) + ")" : "") + (c.x[k] !== nearest ? "  at " + number(c.x[k]) : "");
    });
    showTip(event, (o.xTitle || "step") + " " + number(nearest, 7) + "\n" + lines.join("\n"));
  });
  area.addEventListener("pointerleave", () => { tipBox.hidden = true; rule.setAttribute("visibility", "hidden"); });
  svg.append(rule, area);
  return svg;
}
function curveTable(curves) {
  return behind("Table", ["step"].concat(curves.map(c => c.name)), () => {
    const steps = [...new Set(curves.flatMap(c => c.x))].sort((a, b) => a - b);
    const maps = curves.map(c => new Map(c.x.map((x, i) => [x, c.y[i]])));
    return steps.map(s => [number(s, 9)].concat(maps.map(m => m.has(s) ? number(m.get(s), 5) : "")));
  }, curves.map((_, i) => i + 1).concat([0]));
}
function curvesOf(tag) {
  return runs.map((r, i) => r.curves[tag] && { name: r.name, color: color(i), ...r.curves[tag] }).filter(Boolean);
}
const lossTags = ["train/loss", "total_loss", "loss"];
const lossTag = lossTags.find(t => runs.some(r => r.curves[t])) || null;
const rateTag = ["train/learning_rate", "learning_rate"].find(t => runs.some(r => r.curves[t])) || null;

/* Steps a second between neighbouring points, times the examples of a step. */
function speedOf(run) {
  const c = lossTag && run.curves[lossTag], examples = run.step ? run.step.examples : run.run && run.run.decided ? run.run.decided.examples_a_step : 1;
  if (!c || c.x.length < 3) return null;
  const x = [], y = [];
  for (let i = 1; i < c.x.length; i++) if (c.t[i] - c.t[i - 1] > 0.02) { x.push(c.x[i]); y.push((c.x[i] - c.x[i - 1]) * examples / (c.t[i] - c.t[i - 1])); }
  return x.length > 1 ? { x, y } : null;
}

/* ---- at a glance ---- */

document.getElementById("about").textContent = (runs.length === 1 ? "The run “" + runs[0].name + "”" : runs.length + " runs: " + runs.map(r => r.name).join(", ")) + ". Made " + data.made + " by Tower " + data.tower + ".";
document.title = "Tower report: " + runs.map(r => r.name).join(", ");

{
  const s = section("glance", "At a glance");
  const cards = make("div", { class: "cards" });
  runs.forEach((r, i) => {
    const c = lossTag && r.curves[lossTag], evals = r.evaluations, facts = r.run || {}, decided = facts.decided || {};
    const best = evals.length ? evals.reduce((a, b) => b.precision_at_1 > a.precision_at_1 ? b : a) : null;
    const speed = speedOf(r), rows = [];
    const tail = c ? c.y.slice(-Math.max(1, Math.min(20, Math.floor(c.y.length / 5)))).filter(v => v !== null) : [];
    if (tail.length) rows.push(["loss at the end", make("span", { class: "big" }, number(tail.reduce((a, b) => a + b, 0) / tail.length, 4))]);
    if (best) rows.push(["best accuracy", make("span", { class: "big" }, percent(best.precision_at_1))], ["at step", number(best.step)]);
    if (facts.model) rows.push(["model", facts.model]);
    if (facts.data_set) rows.push(["data set", facts.data_set.name]);
    const towers = decided.towers || (r.step ? r.step.towers.length : 0);
    if (towers) rows.push(["towers", towers + " on " + [...new Set((facts.tower_devices || r.step.towers).map(short))].join(", ")]);
    if (c) rows.push(["last step", number(c.x[c.x.length - 1])]);
    if (c) rows.push(["time", seconds(c.t[c.t.length - 1])]);
    if (speed) { const sorted = [...speed.y].sort((a, b) => a - b); rows.push(["examples/s", number(Math.round(sorted[sorted.length >> 1]))]); }
    if (decided.rate) rows.push(["rate", decided.rate]);
    if (decided.rule) rows.push(["rule", decided.rule]);
    cards.append(make("div", { class: "card", style: "--c:" + color(i) }, make("h3", {}, r.name), make("dl", {}, rows.map(([k, v]) => [make("dt", {}, k), make("dd", {}, v)]))));
  });
  s.append(cards);
}

/* ---- what differs ---- */

if (runs.some(r => r.run)) {
  const flat = (o, prefix, into) => {
    for (const k in o || {}) {
      if (["sessions", "files", "classes"].includes(k)) continue;
      if (o[k] !== null && typeof o[k] === "object" && !Array.isArray(o[k])) flat(o[k], prefix + (k === "options" ? "--" : k + "."), into);
      else into[(prefix === "--" ? "--" : prefix) + k] = Array.isArray(o[k]) ? o[k].map(v => typeof v === "string" ? short(v) : v).join(", ") : o[k];
    }
    return into;
  };
  const flats = runs.map(r => flat(r.run, "", {})), keys = [...new Set(flats.flatMap(f => Object.keys(f)))];
  const text = v => v === undefined ? "" : v === null ? "none" : String(v);
  const rowsOf = all => keys.map(k => {
    const values = flats.map(f => text(f[k])), row = [k.replace("decided.", "").replace("data_set.", "data set: ").replace(/_/g, " ")].concat(values);
    if (runs.length > 1 && new Set(values).size > 1) row.className = "differs";
    return row;
  }).filter(r => all || r.className);
  const differing = rowsOf(false);
  if (runs.length > 1) {
    const s = section("differs", "What differs", differing.length ? "Options, and what followed from them, where the runs are not the same." : "Nothing that run.json knows of: the runs were given the same options.");
    if (differing.length) s.append(table(["", ...runs.map(r => r.name)], differing));
    s.append(behind("Everything", ["", ...runs.map(r => r.name)], () => rowsOf(true)));
  } else {
    const s = section("options", "Options", "What the run was given, and what followed from it.");
    const options = runs[0].run.options || {};
    s.append(table(["option", "value"], Object.keys(options).map(k => ["--" + k, text(options[k])])));
    s.append(behind("Everything that run.json says", ["", runs[0].name], () => rowsOf(true)));
  }
}

/* ---- curves ---- */

if (runs.some(r => Object.keys(r.curves).length)) {
  const s = section("curves", "Curves", "Move over a chart for its values. Where points were too many, the line is the mean of neighbours and the band what lies between them.");
  let log = 0, smoothing = 0;
  const holder = make("div", { class: "grid" });
  const tags = [...new Set(runs.flatMap(r => Object.keys(r.curves)))];
  const first = [lossTag, ...tags.filter(t => /^eval\/(accuracy|loss|top_5)$/.test(t)), rateTag].filter(Boolean);
  const rest = tags.filter(t => !first.includes(t) && !/sparsity/.test(t)), sparse = tags.filter(t => /sparsity/.test(t));
  const one = tag => {
    const c = curvesOf(tag), loss = /loss|entropy/.test(tag);
    return make("div", {}, make("h3", {}, tag), chart(c, { title: tag, yTitle: tag.replace(/^.*\//, ""), log: loss && log, smoothing: loss ? smoothing : 0 }), curveTable(c));
  };
  const draw = () => {
    holder.replaceChildren(...first.map(one));
    const speeds = runs.map((r, i) => { const v = speedOf(r); return v && { name: r.name, color: color(i), ...v }; }).filter(Boolean);
    if (speeds.length) holder.append(make("div", {}, make("h3", {}, "examples a second"), chart(speeds, { title: "examples a second", yTitle: "examples/s", zero: true }), curveTable(speeds)));
  };
  s.append(make("div", { class: "tools" }, "loss:", ...toggles(["linear", "logarithmic"], 0, i => { log = i; draw(); }), "smoothing:", ...toggles(["none", "some", "much"], 0, i => { smoothing = [0, 0.7, 0.93][i]; draw(); })));
  if (runs.length > 1) s.append(legend(runs.map((r, i) => [r.name, color(i)])));
  s.append(holder);
  draw();
  for (const [title, list] of [["All other curves", rest], ["How many activations are zero", sparse]])
    if (list.length) {
      const inside = make("div", { class: "small", style: "max-height:none" }), d = make("details", {}, make("summary", {}, title + " (" + list.length + ")"), inside);
      d.addEventListener("toggle", () => { if (!inside.firstChild) list.forEach(t => inside.append(make("div", {}, make("h3", {}, t), chart(curvesOf(t), { title: t, width: 300, height: 150 })))); });
      s.append(d);
    }
}

/* ---- evaluation ---- */

const evaluated = runs.filter(r => r.evaluations.length);
if (evaluated.length) {
  const s = section("evaluation", "Evaluation", "Of the last evaluation of each run: rows are what an example is, columns what it was taken for.");
  const side = make("div", { class: "side" });
  s.append(side);
  for (const r of evaluated) {
    const holder = make("div"), e = r.evaluations[r.evaluations.length - 1], m = e.confusion, names = (e.classes || []).map(c => c.name);
    holder.append(make("h3", {}, r.name + ": " + percent(e.precision_at_1) + " of " + number(e.examples) + " examples right at step " + number(e.step)));
    if (m && m.length <= 40) {
      const picture = k => r.pictures && r.pictures[k] && r.pictures[k].image ? make("img", { src: r.pictures[k].image, alt: "" }) : null;
      const sums = m.map(row => row.reduce((a, b) => a + b, 0));
      const head = make("tr", {}, make("td"), names.map((n, k) => make("th", { class: "col", scope: "col", title: n }, picture(k), make("div", {}, n))));
      const body = m.map((row, i) => make("tr", {}, make("th", { class: "row", scope: "row" }, names[i], picture(i)), row.map((v, k) => {
        const share = sums[i] ? v / sums[i] : 0, right = i === k;
        return make("td", { class: "v", style: "background:color-mix(in srgb," + (right ? "var(--run2)" : "var(--run4)") + " " + (v ? Math.round(8 + 82 * share) : 0) + "%,transparent);" + (share > 0.55 ? "color:var(--card)" : ""), tip: names[i] + " taken for " + names[k] + "\n" + number(v) + " of " + number(sums[i]) + ", " + percent(share) }, v ? String(v) : "");
      })));
      holder.append(make("div", { class: "scroll" }, make("table", { class: "confusion" }, make("thead", {}, head), make("tbody", {}, body))));
    }
    holder.append(behind("Table by class", ["class", "examples", "right", "share"], () => e.classes.map(c => [c.name, number(c.examples), number(c.correct), c.examples ? percent(c.correct / c.examples) : "–"]), [1, 2, 3]));
    side.append(holder);
  }
}

/* ---- where the time goes ---- */

const kinds = ["compute", "imbalance", "reduction", "copies", "input", "launch"];
const kindWords = { compute: "kernels of towers, and updates", imbalance: "how much longer the device that held the step up computed", reduction: "bringing gradients together", copies: "other copies between devices", input: "waiting for the next batch", launch: "the rest: waking threads, handing over" };
const stepped = runs.filter(r => r.step);
const falls = stepped.filter(r => r.step.waterfall);
if (falls.length) {
  const s = section("waterfall", "Where the time of a step goes", "One step, taken apart along the chain of kernels and copies that each waited for the one before. What another device hid is not in it.");
  const W = 1080, H = 34 * falls.length + 44, L = 130, most = Math.max(...falls.map(r => r.step.waterfall.total));
  const svg = make("svg", { viewBox: "0 0 " + W + " " + H, role: "img", "aria-label": "Time of a step by kind" });
  const px = v => v / most * (W - L - 80);
  for (const v of ticks(0, most, 6)) svg.append(make("line", { class: "gridline", x1: L + px(v), x2: L + px(v), y1: 4, y2: H - 32 }), make("text", { x: L + px(v), y: H - 16, "text-anchor": "middle" }, number(v * 1e3, 4) + " ms"));
  falls.forEach((r, i) => {
    let x = L;
    svg.append(make("text", { class: "strong", x: L - 8, y: 34 * i + 26, "text-anchor": "end" }, r.name.slice(0, 20)));
    for (const k of kinds) {
      const v = r.step.waterfall[k], w = px(v);
      if (w > 0) svg.append(make("rect", { x, y: 34 * i + 8, width: w, height: 26, fill: "var(--" + k + ")", rx: 2, tip: r.name + ", step " + r.step.step + "\n" + k + ": " + seconds(v) + ", " + percent(v / r.step.waterfall.total) + "\n" + kindWords[k] }));
      x += Math.max(0, w);
    }
    svg.append(make("text", { x: x + 8, y: 34 * i + 26 }, seconds(r.step.waterfall.total)));
  });
  s.append(legend(kinds.map(k => [k, "var(--" + k + ")"])), svg,
    behind("Table", ["run"].concat(kinds, ["total"]), () => falls.map(r => [r.name].concat(kinds.map(k => seconds(r.step.waterfall[k]) + " (" + percent(r.step.waterfall[k] / r.step.waterfall.total) + ")"), [seconds(r.step.waterfall.total)]))));
}

/* ---- timeline ---- */

const traced = stepped.filter(r => r.step.spans);
if (traced.length) {
  const s = section("timeline", "A step, device by device", "Each bar is a kernel or a copy, as long as it took. Move over one to see which; make the picture wider to see short ones.");
  s.append(legend(kinds.filter(k => k !== "imbalance").map(k => [k, "var(--" + k + ")"])));
  for (const r of traced) {
    const p = r.step, names = p.kinds, devices = [...new Set(p.spans.map(v => p.nodes[v[0]] && p.nodes[v[0]][3]))].filter(Boolean);
    const holder = make("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": "timeline of " + r.name });
    const draw = zoom => {
      const L = 66, W = 1080 * zoom, row = 30, H = devices.length * row + 34, total = p.seconds * 1e6, px = v => L + v / total * (W - L - 20);
      const svg = make("svg", { viewBox: "0 0 " + W + " " + H, style: "width:" + 100 * zoom + "%", role: "img", "aria-label": "When each device did what in step " + p.step });
      for (const v of ticks(0, total, 8 * zoom)) svg.append(make("line", { class: "gridline", x1: px(v), x2: px(v), y1: 0, y2: H - 24 }), make("text", { x: px(v), y: H - 8, "text-anchor": "middle" }, number(v / 1e3, 5) + " ms"));
      devices.forEach((d, i) => svg.append(make("text", { class: "strong", x: L - 8, y: i * row + 20, "text-anchor": "end" }, short(d)), make("line", { class: "axis", x1: L, x2: W - 20, y1: i * row + row - 2, y2: i * row + row - 2 })));
      const bars = make("g");
      for (const [n, kind, begin, took] of p.spans) {
        const node = p.nodes[n];
        if (!node) continue;
        const bar = make("rect", { x: px(begin).toFixed(2), y: devices.indexOf(node[3]) * row + 4, width: Math.max(0.4, px(begin + took) - px(begin)).toFixed(2), height: row - 8, fill: "var(--" + names[kind] + ")" });
        bar.span = [n, kind, begin, took];
        bars.append(bar);
      }
      bars.addEventListener("pointermove", event => {
        const v = event.target.span, node = v && p.nodes[v[0]];
        if (node) showTip(event, node[0] + "\n" + node[1] + (node[2] ? ", kernel “" + node[2] + "”" : ", a copy") + "\n" + seconds(v[3] / 1e6) + " from " + seconds(v[2] / 1e6) + " on; " + names[v[1]]);
      });
      bars.addEventListener("pointerleave", () => { tipBox.hidden = true; });
      svg.append(bars);
      holder.replaceChildren(svg);
    };
    s.append(make("h3", {}, r.name + ": step " + p.step + ", " + seconds(p.seconds)), make("div", { class: "tools" }, "width:", ...toggles(["1", "3", "10"], 0, i => draw([1, 3, 10][i]))), holder,
      behind("Table: what took longest", ["node", "op", "kernel", "device", "kind", "time"], () => [...p.spans].sort((a, b) => b[3] - a[3]).slice(0, 60).filter(v => p.nodes[v[0]]).map(v => { const n = p.nodes[v[0]]; return [n[0], n[1], n[2] || "copy", short(n[3]), names[v[1]], seconds(v[3] / 1e6)]; }), [5]));
    draw(1);
  }
}

/* ---- placement ---- */

const placed = stepped.filter(r => r.step.placement);
if (placed.length) {
  const s = section("placement", "What runs where", "Kernels of a step, grouped by scope and device; t0 is tower 0, grad conv1 the gradients of conv1. A box’s colour is its device; thick lines cross between devices. Move over a box for the reason it is there, over a line for what it carries.");
  for (const r of placed) {
    const g = r.step.placement, devices = [...new Set(g.groups.map(v => v.device))].sort();
    const pad = 12, W = g.width + 2 * pad, H = g.height + 2 * pad;
    const svg = make("svg", { viewBox: [-pad, -pad, W, H].join(" "), style: "max-height:900px", role: "img", "aria-label": "Groups of nodes by device, and what goes between them" });
    const most = Math.max(1, ...g.edges.map(e => e.bytes));
    for (const e of g.edges) {
      const [a, ...rest] = e.points;
      if (!a) continue;
      const d = "M" + a.join(" ") + (rest.length >= 3 ? "C" + rest.map(v => v.join(" ")).join(" ") : rest.map(v => "L" + v.join(" ")).join(""));
      const words = g.groups[e.from].label + " → " + g.groups[e.to].label + "\n" + bytes(e.bytes) + " in " + e.tensors + " tensor" + (e.tensors === 1 ? "" : "s") + (e.crosses ? ", from " + short(g.groups[e.from].device) + " to " + short(g.groups[e.to].device) : ", on " + short(g.groups[e.to].device));
      const stroke = e.crosses ? "var(--copies)" : "var(--faint)";
      svg.append(make("path", { d, fill: "none", stroke, "stroke-width": e.crosses ? (1.2 + 3.5 * Math.sqrt(e.bytes / most)).toFixed(1) : 0.9, opacity: e.crosses ? 0.75 : 0.45 }),
        make("path", { d, fill: "none", stroke: "transparent", "stroke-width": 9, tip: words }));
    }
    g.groups.forEach(b => {
      const c = color(devices.indexOf(b.device));
      svg.append(make("g", { tip: b.label + " on " + short(b.device) + "\n" + (b.ops ? b.nodes + " kernel" + (b.nodes === 1 ? "" : "s") + ", which make " + bytes(b.bytes) + "\n" + b.ops : b.nodes + " of them") + (b.reason >= 0 && r.step.reasons[b.reason] ? "\nwhy there: " + r.step.reasons[b.reason] : "") },
        make("rect", { x: b.x - b.w / 2, y: b.y - b.h / 2, width: b.w, height: b.h, rx: 6, fill: "color-mix(in srgb, " + c + " 18%, var(--card))", stroke: c, "stroke-width": 1.3 }),
        make("text", { class: "strong", x: b.x, y: b.y + 4, "text-anchor": "middle" }, b.label)));
    });
    const crossing = g.edges.filter(e => e.crosses);
    s.append(...[make("h3", {}, r.name), legend(devices.map((d, i) => [short(d), color(i)]).concat([["crosses between devices: " + bytes(g.copied) + " a step", "var(--copies)"]])),
      W > 1080 ? make("div", { class: "tools" }, "size:", ...toggles(["whole", "full"], 0, i => { svg.style.width = i ? W + "px" : ""; svg.style.maxHeight = i ? "none" : "900px"; })) : null,
      make("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": "placement of " + r.name }, svg),
      behind("Table: groups", ["group", "device", "kernels", "bytes made", "ops", "why there"], () => g.groups.map(b => [b.label, short(b.device), b.nodes, bytes(b.bytes), b.ops, b.reason >= 0 ? r.step.reasons[b.reason] || "" : ""]), [2, 3]),
      behind("Table: what crosses between devices", ["from", "to", "bytes", "tensors"], () => [...crossing].sort((a, b) => b.bytes - a.bytes).map(e => [g.groups[e.from].label + " (" + short(g.groups[e.from].device) + ")", g.groups[e.to].label + " (" + short(g.groups[e.to].device) + ")", bytes(e.bytes), e.tensors]), [2, 3])].filter(Boolean));
  }
}

/* ---- memory ---- */

const remembered = stepped.filter(r => r.step.memory && r.step.memory.some(d => d.total));
if (remembered.length) {
  const s = section("memory", "Memory", "What each device holds when it is fullest, tensor by tensor, the largest first.");
  const uses = { variable: "var(--run0)", slot: "var(--run5)", constant: "var(--run6)", buffer: "var(--run1)", input: "var(--run2)", workspace: "var(--run3)", rest: "var(--launch)" };
  s.append(legend(Object.entries(uses)));
  const most = Math.max(...remembered.flatMap(r => r.step.memory.map(d => d.total)));
  for (const r of remembered) {
    const devices = r.step.memory.filter(d => d.total), W = 1080, L = 66, row = 34, H = devices.length * row + 30, px = v => v / most * (W - L - 110);
    const svg = make("svg", { viewBox: "0 0 " + W + " " + H, role: "img", "aria-label": "Memory by device and tensor" });
    for (const v of ticks(0, most / 1048576, 6)) svg.append(make("line", { class: "gridline", x1: L + px(v * 1048576), x2: L + px(v * 1048576), y1: 0, y2: H - 24 }), make("text", { x: L + px(v * 1048576), y: H - 8, "text-anchor": "middle" }, number(v, 4) + " MiB"));
    devices.forEach((d, i) => {
      let x = L;
      svg.append(make("text", { class: "strong", x: L - 8, y: i * row + 22, "text-anchor": "end" }, short(d.device)));
      const order = Object.keys(uses), items = [...d.items].sort((a, b) => order.indexOf(a[0]) - order.indexOf(b[0]) || b[3] - a[3]);
      for (const [use, name, op, size] of items.concat(d.others ? [["rest", "smaller ones", null, d.others]] : [])) {
        const w = px(size);
        svg.append(make("rect", { x, y: i * row + 5, width: Math.max(0, w - (w > 2 ? 0.7 : 0)), height: row - 10, fill: uses[use], tip: (name || "gaps and rounding") + "\n" + use + (op ? " of " + op : "") + ", " + bytes(size) + "\n" + short(d.device) + ", fullest while " + (d.fullest || "idle") + " runs" }));
        x += w;
      }
      svg.append(make("text", { x: x + 8, y: i * row + 22 }, bytes(d.total) + (d.limit ? " of " + bytes(d.limit) : "")));
    });
    s.append(make("h3", {}, r.name), svg, behind("Table: tensors", ["device", "use", "tensor", "bytes"], () => devices.flatMap(d => d.items.map(v => [short(d.device), v[0], v[1] || "gaps and rounding", bytes(v[3])])), [3]));
  }
}

/* ---- histograms ---- */

if (runs.some(r => Object.keys(r.histograms).length)) {
  const s = section("histograms", "Histograms", "How values of variables, gradients and activations are spread: steps go to the right, values up; the stronger the colour, the more of them.");
  runs.forEach((r, i) => {
    const names = Object.keys(r.histograms);
    if (!names.length) return;
    const inside = make("div", { class: "small", style: "max-height:none" });
    const draw = () => {
      if (inside.firstChild) return;
      for (const name of names) {
        const h = r.histograms[name], n = h.counts.length, bins = h.counts[0].length, W = 250, H = 120, L = 54, B = 22, w = (W - L) / n, hh = (H - B) / bins;
        const svg = make("svg", { viewBox: "0 0 " + W + " " + H, role: "img", "aria-label": name + " between " + number(h.low) + " and " + number(h.high) });
        const shades = new Array(9).fill(""); /* one path for each: thousands of small boxes would take long to draw */
        h.counts.forEach((c, k) => {
          const top = Math.max(...c);
          c.forEach((v, b) => { if (v > 0) shades[Math.round(8 * Math.sqrt(v / top))] += "M" + (L + k * w).toFixed(1) + " " + (H - B - (b + 1) * hh).toFixed(1) + "h" + (w + 0.3).toFixed(1) + "v" + (hh + 0.3).toFixed(1) + "h" + (-w - 0.3).toFixed(1) + "z"; });
        });
        shades.forEach((d, k) => { if (d) svg.append(make("path", { d, fill: color(i), opacity: (0.08 + 0.115 * k).toFixed(2) })); });
        h.counts.forEach((c, k) => svg.append(make("rect", { x: L + k * w, y: 0, width: w, height: H - B, fill: "transparent", tip: () => { const b = c.indexOf(Math.max(...c)), at = h.low + (b + 0.5) / bins * (h.high - h.low); return name + "\nstep " + number(h.x[k]) + ": most lie near " + number(at, 3); } })));
        svg.append(make("text", { x: L - 5, y: 9, "text-anchor": "end" }, number(h.high, 3)), make("text", { x: L - 5, y: H - B, "text-anchor": "end" }, number(h.low, 3)), make("text", { x: L, y: H - 7 }, number(h.x[0])), make("text", { x: W, y: H - 7, "text-anchor": "end" }, "step " + number(h.x[n - 1])));
        inside.append(make("div", {}, make("h3", { title: name }, name), svg));
      }
      inside.append(behind("Table: ranges", ["tensor", "least", "largest"], () => names.map(m => [m, number(r.histograms[m].low), number(r.histograms[m].high)]), [1, 2]));
    };
    const d = make("details", {}, make("summary", {}, r.name + " (" + names.length + ")"), inside);
    d.addEventListener("toggle", draw);
    if (i === 0) { d.open = true; draw(); }
    s.append(d);
  });
}

document.getElementById("foot").textContent = "Everything stands in this file: " + runs.map(r => r.directory).join(", ") + ". Tables behind the charts say the same in numbers.";
document.documentElement.dataset.drawn = "yes";
})();
