// Draws the figures of the page with Observable Plot from the data inside it, and saves them. Everything else on the page
// (words, tables) is there without this script.
"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  // Each figure as it is looked at: rows that are off, the part of the time that is shown, and a second that is marked.
  const views = new Map();
  for (const workload of data.workloads) {
    workload.point = 0;
    workload.byLabel = new Map(workload.cells.map((cell) => [cell.label, cell]));
    for (const figure of workload.figures) views.set(figure.id, { figure, workload, off: new Set(), zoom: null, at: null });
  }

  // ---- words and numbers -------------------------------------------------------------------
  const digits = (v) => (v === 0 ? "0" : Math.abs(v) < 0.01 ? v.toExponential(1) : Math.abs(v) < 0.09995 ? v.toFixed(4) : Math.abs(v) < 9.995 ? v.toFixed(2) : Math.abs(v) < 99.95 ? v.toFixed(1) : v.toFixed(0));
  const scaled = (v) => (v < 999.5 ? (Number.isInteger(v) ? String(v) : digits(v)) : v < 999.5e3 ? digits(v / 1e3) + " k" : v < 999.5e6 ? digits(v / 1e6) + " M" : digits(v / 1e9) + " G");
  const rate = (v) => scaled(v) + "/s";
  const time = (ns) => (ns < 999.5 ? ns.toFixed(0) + " ns" : ns < 999.5e3 ? digits(ns / 1e3) + " µs" : ns < 999.5e6 ? digits(ns / 1e6) + " ms" : digits(ns / 1e9) + " s");
  const bytes = (b) => (b < 1023.5 * 1024 ? digits(b / 1024) + " KiB" : b < 1023.5 * 1048576 ? digits(b / 1048576) + " MiB" : digits(b / 1073741824) + " GiB");
  const brief = (v) => (v >= 1e6 ? +(v / 1e6).toPrecision(3) + " M" : v >= 1e3 ? +(v / 1e3).toPrecision(3) + " k" : String(+v.toPrecision(3)));
  const briefTime = (ns) => (ns < 1e3 ? ns + " ns" : ns < 1e6 ? ns / 1e3 + " µs" : ns < 1e9 ? ns / 1e6 + " ms" : ns / 1e9 + " s");
  const max = (list, of = (v) => v) => list.reduce((m, v) => Math.max(m, of(v) ?? -Infinity), -Infinity);
  const min = (list) => -max(list, (v) => -v);
  const unique = (list) => [...new Set(list)];
  const inside = (v, [low, high]) => Math.min(Math.max(v, low), high);
  const pen = document.createElement("canvas").getContext("2d");
  const family = getComputedStyle(document.body).fontFamily;
  const widthOf = (words, size = 12, weight = 400) => {
    pen.font = `${weight} ${size}px ${family}`;
    return pen.measureText(words).width * 1.03;
  };
  const clip = (words, room, size, weight) => {
    if (widthOf(words, size, weight) <= room) return words;
    let n = words.length;
    while (n > 1 && widthOf(words.slice(0, n) + "…", size, weight) > room) n--;
    return words.slice(0, n) + "…";
  };

  // ---- axes and marks ----------------------------------------------------------------------
  // On paper everything is a little lower.
  let paper = false;
  const tall = (screen, print) => (paper ? print : Math.round(screen));
  const plot = (width, height, marks, { left = 52, right = 20, top = 24, bottom = 36, x, y, ...options } = {}) => {
    // Plot leaves out words of log axes by a rule of its own: these axes are marks.
    const own = [[x, Plot.gridX, Plot.axisX], [y, Plot.gridY, Plot.axisY]].flatMap(([{ type, ticks, tickFormat, label, labelAnchor }, grid, axis]) =>
      type === "log" ? [grid(ticks), axis(ticks, { text: tickFormat, tickSize: 0, label, labelAnchor, labelArrow: "none" })] : []);
    [x, y] = [x, y].map((one) => (one.type === "log" ? { ...one, axis: null, grid: false } : one));
    return Plot.plot({
      width, height, marks: [own, marks], marginLeft: left, marginRight: right, marginTop: top, marginBottom: bottom, x, y,
      style: { background: "none", color: "var(--soft)", fontFamily: "var(--sans)", fontSize: "11px", overflow: "visible" },
      color: { type: "identity" }, opacity: { type: "identity" }, r: { type: "identity" }, ...options,
    });
  };
  const axis = (more) => ({ tickSize: 0, labelArrow: "none", grid: true, label: null, ...more });
  // Bounds of a log axis around positive values, at least a decade apart.
  const around = (values) => {
    const some = values.filter((v) => v > 0);
    if (!some.length) return [1e3, 1e4];
    let low = min(some) / 1.3, high = max(some) * 1.3;
    if (high / low < 10) { const mid = Math.sqrt(low * high); low = mid / 3.2; high = mid * 3.2; }
    return [low, high];
  };
  const log = (domain, room, words, more) => {
    const wide = room / Math.log10(domain[1] / domain[0]), every = Math.max(1, Math.ceil(20 / wide)), ticks = [];
    for (let e = Math.floor(Math.log10(domain[0])); e <= Math.ceil(Math.log10(domain[1])); e++)
      for (const s of wide > 110 ? [1, 2, 5] : wide > 44 ? [1, 3] : [1]) { const v = +(s * 10 ** e).toPrecision(3); if (e % every === 0 && v >= domain[0] * 0.999 && v <= domain[1] * 1.001) ticks.push(v); }
    return axis({ type: "log", domain, ticks, tickFormat: words, ...more });
  };
  const linear = (domain, ticks, words, more) => axis({ domain, ticks, tickFormat: words, ...more });
  // An axis over values that were varied: their own words, as far as there is room for them.
  const varied = (numbers, words, room, more) => {
    const first = numbers[0], last = numbers.at(-1), isLog = first > 0 && last / first > 8;
    const place = (v) => (last === first ? 0 : isLog ? Math.log(v / first) / Math.log(last / first) : (v - first) / (last - first)) * (room - 28);
    let end = -Infinity;
    const ticks = numbers.filter((v) => { const half = widthOf(words(v), 11) / 2, free = place(v) - half > end; if (free) end = place(v) + half + 6; return free; });
    return axis({ type: isLog ? "log" : "linear", domain: first === last ? [first - 1, last + 1] : [first, last], inset: 14, ticks, tickFormat: words, labelAnchor: "center", ...more });
  };
  const wrong = "var(--bad)", halo = { stroke: "var(--paper)", strokeWidth: 4 };
  // Limits that were asked for, across the plot, with their words where there is room for them.
  const limitsOf = (lines, { domain, type }, height) => {
    const shown = lines.filter((l) => l.value >= domain[0] && l.value <= domain[1]).sort((a, b) => a.value - b.value);
    const at = type === "log" ? Math.log : (v) => v, place = (l) => (height * (at(l.value) - at(domain[0]))) / (at(domain[1]) - at(domain[0]));
    const near = (l, i) => i > 0 && place(l) - place(shown[i - 1]) < 16;
    const words = (list, anchor) => Plot.text(list, { y: "value", text: "label", frameAnchor: anchor, textAnchor: anchor === "left" ? "start" : "end", dx: anchor === "left" ? 5 : -5, dy: -8, fill: wrong, ...halo });
    return [
      Plot.ruleY(shown, { y: "value", stroke: wrong, strokeWidth: 1.5, strokeDasharray: "6 4" }),
      words(shown.filter((l, i) => !near(l, i)), "left"), words(shown.filter((l, i) => near(l, i) && !near(shown[i - 1], i - 1)), "right"),
    ];
  };
  const line = (points, look, more) => Plot.line(points, { x: "x", y: "y", stroke: look.stroke, strokeDasharray: look.dash, strokeWidth: 2.2, clip: true, ...more });
  // Intervals beside each other; an end that leaves the plot stands at its edge.
  const intervals = (points, domain, nth, count) =>
    Plot.ruleX(points.filter((d) => d.low != null), { x: "x", y1: (d) => inside(d.low, domain), y2: (d) => inside(d.high ?? Infinity, domain), stroke: points[0]?.look.stroke, strokeOpacity: 0.6, dx: (nth - (count - 1) / 2) * 4, marker: "tick" });
  const dots = (points, r) => Plot.dot(points, { x: "x", y: "y", r, fill: (d) => (d.hollow ? "var(--paper)" : d.look.stroke), stroke: (d) => d.look.stroke, strokeWidth: 1.6, clip: true });
  // The value under the pointer or the finger.
  const pointed = (points) => {
    const at = { x: "x", y: "y", maxRadius: 60 };
    return [
      Plot.dot(points, Plot.pointer({ ...at, r: 6, stroke: "var(--ink)", strokeWidth: 1.5 })),
      Plot.tip(points, Plot.pointer({ ...at, title: "words", fill: "var(--paper)", stroke: "var(--soft)", fontSize: 12, textPadding: 6 })),
    ];
  };
  const between = (d, words) => (d.low == null ? "" : ` (${words(d.low)} ${d.high == null ? "or more" : `to ${words(d.high)}`})`);

  // ---- rows --------------------------------------------------------------------------------
  const colours = 8, dashes = [null, "8 3", "3 3", "10 3 2 3"];
  const noise = { row: data.noise, look: { stroke: "var(--noise)", dash: "1 3" } };
  function look(workload, cell) {
    if (cell.look) return cell.look;
    // Rows of one system share its colour and differ by dashes.
    const siblings = workload.cells.filter((other) => other.point === cell.point && other.colour === cell.colour);
    const dash = dashes[(siblings.indexOf(cell) + Math.floor(cell.colour / colours)) % 4];
    return (cell.look = cell.reference ? { stroke: "var(--reference)", dash: dash ?? "6 3" } : { stroke: `var(--s${cell.colour % colours})`, dash });
  }
  // The rows of a figure whose labels are asked for; they are parsed when the first ones are. Rows that begin alike stand
  // together: [[label, verdict], [the rest of each]].
  function rowsOf(figure, isAsked = () => true) {
    figure.groups ??= JSON.parse(document.getElementById(`${figure.id}-rows`).textContent);
    return figure.groups.filter(([[label]]) => isAsked(label)).flatMap(([head, rest]) => rest.map((values) => [...head, ...values]));
  }
  // Rows as objects with their cell and its look; those of the point that is shown, unless all.
  function objects({ figure, workload }) {
    const cellOf = (label) => (label === data.noise ? noise : workload.byLabel.get(label));
    const isShown = (cell) => figure.kind === "axis" || cell === noise || cell.point === workload.point;
    const rows = rowsOf(figure, (label) => isShown(cellOf(label))).map((row) => Object.fromEntries(figure.columns.map((name, i) => [name, row[i]])));
    for (const row of rows) {
      row.cell = cellOf(row.row);
      row.look = look(workload, row.cell);
      row.invalid = row.verdict && row.verdict !== "valid";
      row.hollow = row.invalid || row.not_compared != null;
    }
    if (figure.kind !== "axis") return rows;
    // The other axes stand at the values of the point that is shown.
    const others = rows.find((d) => d.cell.point === workload.point)?.others ?? rows[0].others;
    return rows.filter((d) => d.others === others).sort((a, b) => a.number - b.number);
  }
  const grouped = (rows) => {
    const groups = new Map();
    for (const row of rows) groups.set(row.cell.row, [...(groups.get(row.cell.row) ?? []), row]);
    return [...groups.values()];
  };
  const named = (row) => row.cell.row + (row.invalid ? ` · ${row.verdict}` : "");
  const faded = (row) => (row.invalid ? 0.45 : 1);

  // ---- charts: each gives its plots ----------------------------------------------------------
  // Percentiles by their nines: 0, 90, 99, 99.9 % are equally far apart, as HdrHistogram draws them.
  function percentiles({ figure }, rows, width) {
    const nines = (share) => -Math.log10(1 - share), percent = (share) => +(share * 100).toPrecision(6) + " %";
    const most = Math.min(5, Math.max(2.05, max(rows, (d) => (d.share < 1 ? nines(d.share) + (d.percentile ? 0.05 : 0) : 0))));
    const points = rows.filter((d) => d.share < 1 && nines(d.share) <= most && d.latency_ns > 0);
    for (const d of points) Object.assign(d, { x: nines(d.share), y: d.latency_ns, low: d.low_ns, high: d.high_ns, words: `${named(d)}\n${d.percentile || percent(d.share) + " within"} ${time(d.latency_ns)}${between({ low: d.low_ns, high: d.high_ns }, time)}` });
    let domain = around(points.map((d) => d.y));
    // A bound near what is measured belongs into the plot.
    for (const l of figure.lines) if (l.value > domain[0] / 30 && l.value < domain[1] * 30) domain = [Math.min(domain[0], l.value / 1.5), Math.max(domain[1], l.value * 1.5)];
    const height = tall(inside(width * 0.36, [220, 360]), 200), room = height - 60;
    const groups = grouped(points), y = log(domain, room, briefTime, { label: "latency" });
    const marks = groups.flatMap((list, nth) => {
      const quiet = list[0].cell === noise, curve = list.filter((d) => !d.percentile), told = list.filter((d) => d.percentile);
      const floor = curve.length ? [{ ...curve[0], x: 0 }] : [];
      return [line([...floor, ...curve], list[0].look, { strokeWidth: quiet ? 1.5 : 2.2, strokeOpacity: faded(list[0]) }), intervals(told, domain, nth, groups.length), dots(told, quiet ? 2.5 : 4)];
    });
    const each = (width - 72) / most, ticks = [0, 0.5, 0.9, 0.99, 0.999, 0.9999].filter((q) => nines(q) <= most && (q !== 0.5 || nines(q) * each > 48));
    const x = axis({ domain: [0, most], ticks: ticks.map(nines), tickFormat: (_, i) => percent(ticks[i]), label: "share of deliveries", labelAnchor: "center" });
    return [plot(width, height, [...limitsOf(figure.lines, y, room), marks, pointed(points)], { x, y })];
  }

  function ecdf(_, rows, width) {
    const points = rows.filter((d) => d.latency_ns > 0);
    for (const d of points) Object.assign(d, { x: d.latency_ns, y: d.share, words: `${named(d)}\n${digits(d.share * 100)} % within ${time(d.latency_ns)}` });
    const marks = grouped(points).map((list) => line([{ x: list[0].x, y: 0 }, ...list], list[0].look, { curve: "step-after", strokeWidth: list[0].cell === noise ? 1.5 : 2.2, strokeOpacity: faded(list[0]) }));
    const x = log(around(points.map((d) => d.x)), (width - 72) * 0.5, briefTime, { label: "latency", labelAnchor: "center" });
    return [plot(width, tall(inside(width * 0.5, [220, 300]), 190), [marks, pointed(points)], { x, y: linear([0, 1], 4, (v) => v * 100 + " %", { label: "share of deliveries" }) })];
  }

  // Bars below their names, so that they have the whole width.
  function bars(groups, width, x, words, marks, top = 4) {
    const step = tall(38, 31), name = (g) => g[0].cell.label, text = { y: name, dy: 11 - step / 2, fontSize: 12, ...halo };
    const bar = { y: (d) => d.cell.label, insetTop: 21, insetBottom: step - 32, middle: 26.5 - step / 2 };
    return [plot(width, top + groups.length * step + 22, [
      marks(bar),
      Plot.text(groups, { ...text, text: (g) => clip(named(g[0]), width - widthOf(words(g)) - 20, 12, 600), frameAnchor: "left", textAnchor: "start", fontWeight: 600, fill: (g) => (g[0].invalid ? "var(--warn)" : "var(--ink)") }),
      Plot.text(groups, { ...text, text: words, frameAnchor: "right", textAnchor: "end", dx: 18, fill: "var(--ink)" }),
    ], { left: 4, right: 20, top, bottom: 22, x: axis(x), y: { type: "band", domain: groups.map(name), axis: null, padding: 0 } })];
  }

  function throughput({ figure, workload }, rows, width) {
    const groups = grouped(rows).sort((a, b) => b[0].delivered_msgs_per_s - a[0].delivered_msgs_per_s), lines = figure.lines.filter((l) => l.value > 0).slice(0, 1);
    const most = Math.max(max(rows, (d) => d.high_msgs_per_s ?? d.delivered_msgs_per_s), workload.flatOut ? 0 : max(rows, (d) => d.due_msgs_per_s), max(lines, (l) => l.value)) || 1;
    const half = (d) => (d.low_msgs_per_s == null || !d.delivered_msgs_per_s ? "" : d.repeats > 2 ? ` ±${digits(((d.high_msgs_per_s - d.delivered_msgs_per_s) / d.delivered_msgs_per_s) * 100)} %` : ` (${rate(d.low_msgs_per_s)}, ${rate(d.high_msgs_per_s)})`);
    const more = (d) => d.bound.startsWith("or more"), value = (d) => d.delivered_msgs_per_s;
    const words = ([d]) => rate(value(d)) + (width < 420 ? (more(d) ? " or more" : "") : half(d) + (d.bound ? ` ${d.bound.split(" (")[0]}` : ""));
    for (const d of rows) d.words = `${named(d)}\n${rate(value(d))}${half(d)} ${d.bound}\n${workload.flatOut ? "" : `due ${rate(d.due_msgs_per_s)}`}`.trim();
    return bars(groups, width, { domain: [0, most * 1.06], ticks: Math.max(3, width / 110), tickFormat: (v) => brief(v) }, words, (bar) => [
      Plot.barX(rows, { ...bar, x: value, fill: (d) => d.look.stroke, fillOpacity: (d) => (d.bound === "" && d.invalid ? 0.3 : d.bound.startsWith("under") ? 0.55 : 0.9) }),
      // A lower bound goes on.
      Plot.text(rows.filter(more), { x: value, y: bar.y, text: () => "»", dx: 4, dy: bar.middle, textAnchor: "start", fontSize: 16, fill: (d) => d.look.stroke }),
      Plot.ruleY(rows.filter((d) => d.low_msgs_per_s != null), { x1: "low_msgs_per_s", x2: "high_msgs_per_s", y: bar.y, dy: bar.middle, stroke: "var(--ink)", marker: "tick" }),
      workload.flatOut ? null : Plot.tickX(rows.filter((d) => d.due_msgs_per_s), { x: "due_msgs_per_s", y: bar.y, insetTop: bar.insetTop - 3, insetBottom: bar.insetBottom - 3, stroke: "var(--soft)", strokeWidth: 2 }),
      Plot.ruleX(lines, { x: "value", stroke: wrong, strokeWidth: 1.5, strokeDasharray: "6 4" }),
      Plot.text(lines, { x: "value", text: "label", frameAnchor: "top", dy: -10, textAnchor: lines[0]?.value > most / 2 ? "end" : "start", fill: wrong }),
      Plot.tip(rows, Plot.pointer({ x: value, y: bar.y, title: "words", fill: "var(--paper)", stroke: "var(--soft)", fontSize: 12, maxRadius: 400 })),
    ], lines.length ? 20 : 4);
  }

  // Parts of a whole: the system's own in full colour, the client's paler.
  const opacity = { system: 0.95, publishers: 0.5, client: 0.35, subscribers: 0.25 };
  const stacked = (of, unit) => (_, rows, width) => {
    const value = (d) => d[of] ?? 0, total = (group) => group.reduce((sum, d) => sum + value(d), 0);
    const groups = grouped(rows).sort((a, b) => total(a) - total(b)), most = max(groups, total) * 1.05 || 1;
    const words = (group) => {
      const all = group.map((d) => `${d.part} ${unit(value(d))}`).join(" · ");
      return group.length > 1 && widthOf(all) + widthOf(named(group[0]), 12, 600) + 24 < width ? all : unit(total(group));
    };
    // In KiB, MiB or GiB the marks are round.
    const base = of === "rss_bytes" ? 1024 ** Math.floor(Math.log(most) / Math.log(1024)) : 1;
    const x = { domain: [0, most / base], ticks: Math.max(3, width / 110), tickFormat: (v) => v === 0 ? "0" : unit(v * base).replace(/\.0+ /, " ") };
    for (const d of rows) d.words = `${named(d)}\n${d.part} ${unit(value(d))}`;
    const stack = (bar) => Plot.stackX({ x: (d) => value(d) / base, y: bar.y, order: null, z: "part" });
    return bars(groups, width, x, words, (bar) => [
      Plot.barX(rows, { ...stack(bar), insetTop: bar.insetTop, insetBottom: bar.insetBottom, insetRight: 1, fill: (d) => d.look.stroke, fillOpacity: (d) => opacity[d.part] * (d.invalid ? 0.5 : 1) }),
      Plot.tip(rows, Plot.pointer({ ...stack(bar), title: "words", fill: "var(--paper)", stroke: "var(--soft)", fontSize: 12, maxRadius: 400 })),
    ]);
  };

  function series(view, rows, width) {
    const { figure, zoom, at } = view, whole = Math.max(max(rows, (d) => d.t_s), max(figure.marks, (m) => m.to_s), 0.1);
    const domain = zoom ?? [0, (view.whole = whole)], beside = width > 560 ? 2 : 1, wide = Math.floor(width / beside - (beside - 1) * 8);
    const panels = [
      [`deliveries per second${rows.some((d) => d.asked_msgs_per_s != null) ? " (dotted: asked for)" : ""}`, [["delivered_msgs_per_s", 2, 1], ["asked_msgs_per_s", 1.4, 0.9, "1 3", "asked for"]], rate, brief],
      ["latency: p50 thick, p99 thin", [["latency_p50_ns", 2.2, 1, null, "p50"], ["latency_p99_ns", 1, 0.9, null, "p99"]], time, briefTime],
      ["backlog, messages (dotted: held back before the system)", [["backlog_msgs", 1.8, 1, null, "backlog"], ["held_back_msgs", 1.4, 1, "1 3", "held back"]], scaled, brief],
      ["processor cores: system thick, clients thin", [["system_cpu_cores", 2.2, 1, null, "system"], ["publishers_cpu_cores", 1, 0.9, null, "publishers"], ["subscribers_cpu_cores", 1, 0.9, "4 2", "subscribers"]], digits, brief],
    ];
    const groups = grouped(rows);
    return panels.map(([name, columns, exact, words], nth) => {
      const points = groups.flatMap((group) => columns.map(([column, strokeWidth, strokeOpacity, dash, part]) => {
        const known = group.filter((d) => d[column] != null && !(column === "held_back_msgs" && !group.some((d) => d[column] > 0)));
        const list = known.map((d) => ({ x: d.t_s, y: d[column], words: `${named(d)}${d.repeat ? `, repeat ${d.repeat}` : ""}\n${d.t_s} s: ${part ? part + " " : ""}${exact(d[column])}` }));
        return { list, look: { ...group[0].look, dash: dash ?? group[0].look.dash }, strokeWidth, strokeOpacity: strokeOpacity * faded(group[0]), curve: column.endsWith("_msgs") ? "step-after" : "step-before" };
      }));
      const seen = points.flatMap(({ list }) => list.filter((d) => d.x >= domain[0] && d.x <= domain[1]));
      const last = nth >= panels.length - beside, height = tall(width > 560 ? 140 : 124, 96) + (last ? 12 : 0), room = height - (last ? 60 : 48);
      const y = exact === time ? log(around(seen.map((d) => d.y)), room, words) : linear([0, Math.max(max(seen, (d) => d.y), columns[0][0].endsWith("_msgs") ? 3 : 0.01) * 1.06], 3, words);
      const label = figure.marks.filter((m) => nth === 0 && !zoom && ((m.to_s - m.from_s) / whole) * (wide - 72) > widthOf(m.label, 11));
      const marks = points.filter(({ list }) => list.length).map(({ list, look, ...more }) => line([{ ...list[0], x: more.curve === "step-before" ? 0 : list[0].x }, ...list].map((d) => ({ ...d, y: inside(d.y, y.domain) })), look, more));
      return plot(wide, height, [
        Plot.rect(figure.marks, { x1: "from_s", x2: "to_s", fill: "var(--ink)", fillOpacity: 0.06, clip: true }),
        Plot.text(label, { x: (m) => (m.from_s + m.to_s) / 2, text: "label", frameAnchor: "top", dy: 8 }),
        at == null ? null : Plot.ruleX([at], { stroke: wrong, strokeWidth: 1.5, strokeDasharray: "3 3", clip: true, className: "second" }),
        marks, pointed(seen),
      ], { bottom: last ? 36 : 24, x: linear(domain, wide / 80, undefined, { label: last ? "seconds from the start of the measurement" : null, labelAnchor: "center" }), y: { ...y, label: clip(name, wide - 8, 11) } });
    });
  }

  // Figures with intervals over what was varied: one plot of several columns.
  function over(rows, numbers, { name, columns, exact, words, lines = [], due = [], isLog, width, height, at, clips }) {
    const points = grouped(rows).map((group) => columns.map((c) => group.filter((d) => d[c.name] != null).map((d) => ({
      ...d, x: d.number, y: d[c.name], low: d[c.low], high: d[c.high], thick: c.thick, hollow: d.hollow || (d[c.low] != null && d[c.high] == null),
      words: `${d.cell.row}, ${at(d.number)}\n${c.words}${exact(d[c.name])}${between({ low: d[c.low], high: d[c.high] }, exact)}${d.invalid ? "\n" + d.verdict : ""}${[d.change, d.not_compared].map((words) => (words ? "\n" + words : "")).join("")}`,
    }))));
    const all = points.flat(2), values = [...all.map((d) => d.y), ...due.map((d) => d.due_msgs_per_s), ...lines.map((l) => l.value).filter((v) => v < max(all, (d) => d.y) * 30), ...(clips ?? [])];
    const least = min(values), most = max(values), spare = (most - least || Math.abs(most) || 1) * 0.08, room = height - 60;
    // From zero, unless that would hide the differences.
    const y = isLog ? log(around(values), room, words) : linear([least >= 0 && (least < most * 0.5 || !clips) ? 0 : least - spare, most + spare], 4, words);
    const left = Math.max(40, max(isLog ? y.ticks : y.domain, (v) => widthOf(words(v), 11)) + 14);
    // No line over a point that is left out.
    const runs = (list) => numbers.map((v) => list.find((d) => d.x === v) ?? { x: v, y: NaN });
    return plot(width, height, [
      ...limitsOf(lines, y, room),
      line(due.map((d) => ({ x: d.number, y: d.due_msgs_per_s })), { stroke: "var(--soft)", dash: "2 3" }, { strokeWidth: 1.5 }),
      points.map((group, nth) => group.filter((list) => list.length).map((list) => [line(runs(list), list[0].look, { strokeWidth: list[0].thick, strokeOpacity: 0.85 }), intervals(list, y.domain, nth, points.length), dots(list, list[0].thick > 1.5 ? 4.2 : 3)])),
      // Ringed: it changed beyond noise.
      Plot.dot(all.filter((d) => d.change), { x: "x", y: "y", r: 9, stroke: "var(--ink)", strokeWidth: 1.6, className: "changed" }), pointed(all),
    ], { left, x: varied(numbers, at, width - left - 20), y: { ...y, label: clip(name, width - 8, 11) || null } });
  }

  function overAxis({ figure, workload }, rows, width) {
    const numbers = unique(rows.map((d) => d.number)).sort((a, b) => a - b), beside = width > 640 ? 2 : 1;
    const size = { width: Math.floor(width / beside - (beside - 1) * 8), height: tall(inside(width * 0.3, [210, 300]), 180) };
    const at = (v) => rows.find((d) => d.number === v).value, lines = (of) => figure.lines.filter((l) => l.of.startsWith(of));
    const due = workload.flatOut ? [] : numbers.map((n) => rows.find((d) => d.number === n)).filter((d) => d.due_msgs_per_s > 0);
    const quantile = (name, thick) => ({ name: `${name}_ns`, low: `${name}_low_ns`, high: `${name}_high_ns`, thick, words: name + " " });
    const rates = rows.map((d) => d.delivered_msgs_per_s);
    return [
      over(rows, numbers, { ...size, at, name: "latency: p99 thick, p50 thin", columns: [quantile("p50", 1.2), quantile("p99", 2.2)], exact: time, words: briefTime, lines: lines("latency_ns."), isLog: true }),
      over(rows, numbers, { ...size, at, due, name: "deliveries per second", columns: [{ name: "delivered_msgs_per_s", low: "low_msgs_per_s", high: "high_msgs_per_s", thick: 2.2, words: "" }], exact: rate, words: brief, lines: lines("delivered_msgs_per_s"), isLog: max(rates) / min(rates.map((v) => v || 1)) > 20 }),
    ];
  }

  // ---- searches for a limit ----------------------------------------------------------------
  // What a trial told is a shape: filled disc, hollow triangle, square, cross.
  const told = {
    within: { words: "within", stroke: "var(--good)", fill: "var(--good)", symbol: "circle" },
    beyond: { words: "beyond", stroke: wrong, fill: "var(--paper)", symbol: "triangle" },
    client: { words: "client the limit", stroke: "var(--link)", fill: "var(--link)", symbol: "square" },
    nothing: { words: "tells nothing", stroke: "var(--soft)", fill: "none", symbol: "times" },
  };
  // What is common to both figures: unit of the load, scale of the loads, marks of the limit.
  function searched(figure, rows, of) {
    const column = figure.columns.find((name) => name.startsWith("load")), unit = column.slice(5), value = of ?? column;
    const at = Object.fromEntries(figure.lines.filter((l) => ["low", "high", "confirmed"].includes(l.of)).map((l) => [l.of, l.value]));
    const loads = [...rows.map((d) => d[value]), ...Object.values(at)].filter((v) => v > 0), least = loads.length ? min(loads) : 0, far = loads.length > 0 && max(loads) / least > 30;
    const amount = unit === "bytes" ? (b) => (b < 1023.5 ? `${+b.toFixed(0)} B` : bytes(b)) : unit === "msgs_per_s" ? rate : scaled;
    const about = (d, more) => `${d.purpose}${d[column] == null ? "" : ` ${amount(d[column])}`}: ${more}\n${told[d.finding].words}${d.verdict ? `, ${d.verdict}` : ""}`;
    // Most was measured near the limit: no axis begins at zero.
    const domain = far ? [least / 1.4, max(loads) * 1.4] : [least * 0.9, loads.length ? max(loads) * 1.04 : 1];
    const scale = (room, words, label) => (far ? log(domain, room * 0.5, words, { label, labelAnchor: "center" }) : linear(domain, room / 80, words, { label, labelAnchor: "center" }));
    const limit = [
      "low" in at || "high" in at ? Plot.rect([at], { x1: inside(at.low ?? -Infinity, domain), x2: inside(at.high ?? Infinity, domain), fill: "var(--ink)", fillOpacity: 0.1, className: "interval" }) : null,
      Plot.ruleX(["low", "high"].filter((end) => end in at).map((end) => inside(at[end], domain)), { stroke: "var(--soft)", strokeDasharray: "2 2" }),
      "confirmed" in at ? Plot.ruleX([inside(at.confirmed, domain)], { stroke: "var(--ink)", strokeWidth: 2, className: "confirmed" }) : null,
    ];
    const marks = (points) => [
      Object.entries(told).map(([finding, { stroke, fill, symbol }]) => Plot.dot(points.filter((d) => d.finding === finding), { x: "x", y: "y", symbol, r: 4.5, fill, stroke, strokeWidth: 1.8, className: finding })),
      Plot.dot(points.filter((d) => d.purpose === "long"), { x: "x", y: "y", r: 8.5, stroke: "var(--ink)", strokeWidth: 1.4 }),
    ];
    return { column, unit, amount, about, scale, limit, marks, far, domain };
  }

  function limit({ figure }, rows, width) {
    const { column, unit, amount, about, scale, limit, marks, far, domain } = searched(figure, rows);
    const achieved = figure.columns.find((name) => name.startsWith("achieved")), flat = rows.filter((d) => d[column] == null);
    const name = { msgs_per_s: "messages per second", bytes: "payload" }[unit] ?? unit, words = (v) => (unit === "bytes" ? amount(v) : brief(v));
    const height = tall(inside(width * 0.6, [240, 340]), 210), slot = flat.length ? 62 : 20, x = scale(width - 52 - slot, words, `load, ${name}`);
    for (const d of rows) Object.assign(d, { x: d[column] ?? null, y: d[achieved], words: about(d, `${amount(d[achieved])} achieved${d.measured_s == null ? "" : ` over ${+d.measured_s.toPrecision(3)} s`}`) });
    const paced = rows.filter((d) => d.x != null), most = Math.max(max(rows, (d) => d.y), max(paced, (d) => d.x)), some = rows.map((d) => d.y).filter((v) => v > 0);
    const low = far ? Math.min(domain[0], ...some) : Math.min(domain[0], ...rows.map((d) => d.y * 0.95));
    const y = far ? log([low, most * 1.4], height - 60, words) : linear([low, (most || 1) * 1.06], 4, words);
    const from = Math.max(domain[0], y.domain[0]), to = Math.min(domain[1], y.domain[1]);
    const levels = unique(paced.map((d) => d.x)).sort((a, b) => a - b).map((load) => { const alike = paced.filter((d) => d.x === load); return { x: load, y: alike.reduce((sum, d) => sum + d.y, 0) / alike.length }; });
    const beside = (mark, options) => mark(flat, { ...options, y: "y", frameAnchor: "right", dx: slot / 2 });
    return [plot(width, height, [
      limit, line([{ x: from, y: from }, { x: to, y: to }], { stroke: "var(--soft)", dash: "4 3" }, { strokeWidth: 1.4 }), line(levels, { stroke: "var(--soft)" }, { strokeWidth: 1.2, strokeOpacity: 0.7 }),
      marks(paced),
      // Flat out there is no load: at the edge.
      Object.entries(told).map(([finding, { words, ...look }]) => Plot.dot(flat.filter((d) => d.finding === finding), { ...look, y: "y", frameAnchor: "right", dx: slot / 2, r: 4.5, strokeWidth: 1.8, className: finding })),
      flat.length ? Plot.text(["flat out"], { frameAnchor: "bottom-right", textAnchor: "middle", dx: slot / 2, dy: 16, text: (d) => d }) : null,
      pointed(paced), flat.length ? beside(Plot.tip, Plot.pointerY({ title: "words", fill: "var(--paper)", stroke: "var(--soft)", fontSize: 12, maxRadius: 12, y: "y" })) : null,
    ], { right: slot, x, y: { ...y, label: `achieved, ${name}` } })];
  }

  function latencyOverLoad({ figure }, rows, width) {
    const share = rows.some((row) => row.load_share != null), { column, unit, amount, about, scale, limit, marks } = searched(figure, rows, share ? "load_share" : null);
    const point = (of) => rows.filter((d) => d[`${of}_ns`] != null).map((d) => ({ ...d, x: d[share ? "load_share" : column], y: d[`${of}_ns`], words: about(d, `${of} ${time(d[`${of}_ns`])}`) }));
    const [p50, p99] = [point("p50"), point("p99")], values = [...p50, ...p99].map((d) => d.y).filter((v) => v > 0);
    const asked = figure.lines.filter((l) => l.of.startsWith("latency_ns")), height = tall(inside(width * 0.6, [240, 340]), 210);
    const y = log(around([...values, ...asked.map((l) => l.value).filter((v) => v < max(values) * 30)]), height - 60, briefTime, { label: "latency: p99, and p50 below" });
    const words = share ? (v) => +(v * 100).toPrecision(3) + " %" : unit === "bytes" ? amount : brief;
    return [plot(width, height, [
      limit, ...limitsOf(asked, y, height - 60),
      Plot.ruleX(rows.filter((d) => d.p99_ns != null && d.p50_ns != null), { x: share ? "load_share" : column, y1: "p50_ns", y2: "p99_ns", stroke: "var(--soft)", strokeOpacity: 0.5 }),
      Plot.dot(p50, { x: "x", y: "y", r: 2.6, fill: "var(--paper)", stroke: "var(--ink)", strokeWidth: 1.4 }), marks(p99), pointed([...p50, ...p99]),
    ], { x: scale(width - 72, words, share ? "load, share of the limit" : "load"), y })];
  }

  // ---- claims ------------------------------------------------------------------------------
  const inBytes = (v) => (v < 999.5 ? `${scaled(v)} B/s` : `${scaled(v)}B/s`), few = (v) => +v.toPrecision(6);
  // What figures are measured in: in full, and as briefly as an axis has it.
  const units = {
    ns: [time, (v) => briefTime(few(v))], us: [(v) => time(v * 1e3), (v) => briefTime(few(v * 1e3))], s: [(v) => time(v * 1e9), (v) => briefTime(few(v * 1e9))],
    bytes: [bytes, bytes], bytes_per_s: [inBytes, inBytes], msgs_per_s: [rate, brief], share: [(v) => digits(v * 100) + " %", (v) => +(v * 100).toPrecision(3) + " %"],
  };
  // The figure of each side over the axis.
  function claim({ figure }, rows, width) {
    const [name, low, high] = ["value", "ci_low", "ci_high"].map((start) => figure.columns.find((name) => name.startsWith(start)));
    const [exact, words] = units[name.slice(6)] ?? [digits, brief], names = unique(rows.map((d) => d.at));
    // Values of the axis that are no numbers stand in their order.
    if (!rows.every((d) => d.number != null)) for (const d of rows) d.number = names.indexOf(d.at);
    const numbers = unique(rows.map((d) => d.number)).sort((a, b) => a - b), values = rows.map((d) => d[name]).filter((v) => v != null), least = min(values), most = max(values);
    // A very wide interval leaves the plot: it must not press everything else together.
    const reach = Math.max(most - least, Math.abs(most) * 0.5), isLog = least > 0 && most / least > 8;
    const clips = rows.flatMap((d) => [d[low], d[high]]).filter((v) => v != null && (isLog ? v > least / 4 && v < most * 4 : v > least - reach && v < most + reach));
    return [over(rows, numbers, { width, height: tall(inside(width * 0.5, [190, 260]), 160), at: (v) => rows.find((d) => d.number === v).at, name: "", columns: [{ name, low, high, thick: 2, words: "" }], exact, words, isLog, clips })];
  }

  const draw = { claim, trend: claim, percentiles, ecdf, axis: overAxis, throughput, series, times: stacked("cpu_us_per_msg", (us) => time(us * 1e3)), bytes: stacked("rss_bytes", bytes), limit, "latency-over-load": latencyOverLoad };

  // ---- legends -----------------------------------------------------------------------------
  const html = (name, attributes = {}, ...children) => {
    const isSvg = ["svg", "line", "rect", "path", "circle", "text", "title", "desc"].includes(name);
    const node = isSvg ? document.createElementNS("http://www.w3.org/2000/svg", name) : document.createElement(name);
    for (const [key, v] of Object.entries(attributes)) if (v != null) node.setAttribute(key, v);
    node.append(...children.filter((child) => child != null));
    return node;
  };
  const swatch = (mark) => html("svg", { width: 24, height: 12, viewBox: "0 0 24 12", "aria-hidden": "true" }, mark);
  const key = (words, mark) => html("span", { class: "key" }, swatch(mark), words);
  const stroke = (look, more) => html("line", { x1: 1, x2: 23, y1: 6, y2: 6, stroke: look.stroke, "stroke-width": 2.5, "stroke-dasharray": look.dash, ...more });
  const symbols = { circle: "M8,6a4,4 0 1,0 8,0a4,4 0 1,0 -8,0Z", triangle: "M12,1L17,10L7,10Z", square: "M8,2h8v8h-8Z", times: "M8,2l8,8M8,10l8,-8" };
  // Rows to switch off and on, and what else is drawn.
  function legend(view, rows) {
    const { figure } = view, kind = figure.kind, entries = [];
    if (kind === "times" || kind === "bytes") for (const part of unique(rows.map((d) => d.part))) entries.push(key(part, html("rect", { x: 6, y: 0, width: 12, height: 12, fill: "var(--ink)", opacity: opacity[part] })));
    else if (kind === "limit" || kind === "latency-over-load") {
      const has = (of) => figure.lines.some((l) => l.of === of), line = (more) => html("line", { x1: 12, x2: 12, y1: 0, y2: 12, stroke: "var(--ink)", ...more });
      for (const [finding, { words, stroke, fill, symbol }] of Object.entries(told)) if (rows.some((d) => d.finding === finding)) entries.push(key(words, html("path", { d: symbols[symbol], stroke, fill, "stroke-width": 1.8 })));
      if (rows.some((d) => d.purpose === "long")) entries.push(key("ringed: long", html("circle", { cx: 12, cy: 6, r: 5.3, fill: "none", stroke: "var(--ink)", "stroke-width": 1.4 })));
      if (has("low") || has("high")) entries.push(key(has("low") && has("high") ? "95 % interval" : "where the limit lies", html("rect", { x: 4, width: 16, height: 12, fill: "var(--ink)", opacity: 0.15 })));
      if (has("confirmed")) entries.push(key("confirmed", line({ "stroke-width": 2 })));
      entries.push(kind === "limit" ? key("all that was offered", line({ x1: 3, x2: 21, y1: 11, y2: 1, stroke: "var(--soft)", "stroke-dasharray": "4 3" })) : key("p50", html("circle", { cx: 12, cy: 6, r: 2.6, fill: "var(--paper)", stroke: "var(--ink)", "stroke-width": 1.4 })));
    } else if (kind !== "throughput")
      for (const [first] of grouped(rows)) {
        const name = first.cell.row, words = ["axis", "claim", "trend"].includes(kind) ? name : named(first);
        entries.push(html("button", { type: "button", "data-row-of": name, "aria-pressed": !view.off.has(name) }, swatch(stroke(first.look, { opacity: faded(first) })), words));
      }
    if (kind === "series") for (const [step, words] of [["in", "Zoom in"], ["out", "Zoom out"], ["back", "Earlier"], ["on", "Later"]]) entries.push(html("button", { type: "button", class: "tools", "data-zoom": step }, words));
    return entries;
  }

  const roomOf = (element) => Math.max(280, Math.floor(element.querySelector(".chart").clientWidth));
  function render(element, fixed) {
    const view = views.get(element.id), { figure, workload } = view, place = element.querySelector(".chart");
    const width = fixed ?? roomOf(element);
    const as = JSON.stringify([width, workload.point, paper, [...view.off], view.zoom, view.at]);
    if (place.dataset.drawn === as) return;
    place.dataset.drawn = as;
    const rows = objects(view), shown = rows.filter((row) => !view.off.has(row.cell.row));
    const focus = document.activeElement, same = element.contains(focus) && (focus.dataset.rowOf ?? focus.dataset.zoom);
    let keys = element.querySelector(".legend");
    if (!keys) place.before((keys = html("div", { class: "legend", role: "group", "aria-label": `What is shown of ${figure.title}` })));
    keys.replaceChildren(...legend(view, rows));
    // Who switches by the keyboard stays where they were.
    if (same) [...keys.querySelectorAll("button")].find((button) => [button.dataset.rowOf, button.dataset.zoom].includes(same))?.focus();
    const plots = shown.length ? draw[figure.kind](view, shown, width) : [];
    for (const one of plots) { one.setAttribute("aria-hidden", "true"); one.removeAttribute("role"); }
    place.replaceChildren(...plots);
  }

  // ---- zoom --------------------------------------------------------------------------------
  function zoomTo(element, from, to) {
    const view = views.get(element.id), least = view.whole / 200;
    const wide = inside(to - from, [least, view.whole]), start = inside(from, [0, view.whole - wide]);
    view.zoom = wide > view.whole * 0.999 ? null : [start, start + wide].map((v) => +v.toPrecision(6));
    changed(element);
  }
  function zoomBy(element, step) {
    const view = views.get(element.id), [from, to] = view.zoom ?? [0, view.whole], wide = to - from;
    const mid = step === "in" && view.at > from && view.at < to ? view.at : (from + to) / 2;
    const [shift, scale] = { in: [0, 0.5], out: [0, 2], back: [-0.5, 1], on: [0.5, 1] }[step];
    zoomTo(element, mid + shift * wide - (wide * scale) / 2, mid + shift * wide + (wide * scale) / 2);
  }
  // A part of the time is chosen by drawing over it; twice on the plot shows all.
  document.addEventListener("pointerdown", (down) => {
    const svg = down.target.closest?.("figure[data-kind=series] .chart > svg");
    if (!svg || down.button !== 0) return;
    const element = svg.closest("figure"), box = svg.getBoundingClientRect(), x = svg.scale("x"), k = svg.viewBox.baseVal.width / box.width;
    const second = (event) => inside(x.invert(inside((event.clientX - box.left) * k, x.range)), x.domain);
    const [top, bottom] = [...svg.scale("y").range].sort((a, b) => a - b), chosen = html("rect", { y: top, height: bottom - top, fill: "var(--link)", opacity: 0.2 });
    const end = () => { for (const [name, act] of acts) removeEventListener(name, act); chosen.remove(); };
    const acts = [
      ["pointermove", (event) => {
        const [a, b] = [x.apply(second(down)), x.apply(second(event))].sort((p, q) => p - q);
        chosen.setAttribute("x", a);
        chosen.setAttribute("width", b - a);
        if (!chosen.parentNode && b - a > 4) svg.append(chosen);
      }],
      ["pointerup", (event) => {
        const [from, to] = [second(down), second(event)].sort((a, b) => a - b), drawn = chosen.parentNode;
        end();
        if (drawn && x.apply(to) - x.apply(from) > 4) zoomTo(element, from, to);
      }],
      ["pointercancel", end],
    ];
    for (const [name, act] of acts) addEventListener(name, act);
  });
  document.addEventListener("dblclick", (event) => {
    const element = event.target.closest?.("figure[data-kind=series] .chart")?.closest("figure");
    if (element) zoomTo(element, 0, Infinity);
  });

  // ---- state in the URL --------------------------------------------------------------------
  // #w1-series&point=1&off=nats&zoom=10,14&at=12.3: the figure that was last touched, as it was left.
  function changed(element) {
    const { workload, off, zoom, at } = views.get(element.id), state = new URLSearchParams();
    if (workload.point) state.set("point", workload.point);
    for (const row of off) state.append("off", row);
    if (zoom) state.set("zoom", zoom.join());
    if (at != null) state.set("at", at);
    history.replaceState(null, "", `#${element.id}${[...state].length ? `&${state}` : ""}`);
    render(element);
  }
  function choosePoint(workload, point) {
    workload.point = inside(point, [0, max(workload.cells, (cell) => cell.point)]);
    const number = data.workloads.indexOf(workload);
    for (const button of document.querySelectorAll(`button[data-workload="${number}"]`)) button.setAttribute("aria-pressed", +button.dataset.point === workload.point);
  }
  function restore() {
    const [id, ...rest] = location.hash.slice(1).split("&"), element = document.getElementById(id), view = views.get(id);
    if (!view || !rest.length) return;
    const state = new URLSearchParams(rest.join("&")), numbers = (name) => (state.get(name) ?? "").split(",").filter((v) => v !== "").map(Number);
    choosePoint(view.workload, Math.trunc(numbers("point")[0]) || 0);
    const [from, to] = numbers("zoom"), [at] = numbers("at");
    Object.assign(view, { off: new Set(state.getAll("off")), zoom: from >= 0 && to > from && to < Infinity ? [from, to] : null, at: Number.isFinite(at) ? at : null });
    render(element);
    element.scrollIntoView();
  }

  // ---- saving ------------------------------------------------------------------------------
  const quote = (text) => (/[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
  function csv({ figure }) {
    const rows = rowsOf(figure).map((row) => row.map((v) => (v === null ? "" : quote(String(v)))).join(","));
    return [figure.columns.join(","), ...rows, ""].join("\r\n");
  }
  // A copy that stands alone: colours resolved, on paper, with its title and what its marks mean.
  function svg({ figure, workload }, element) {
    const style = getComputedStyle(document.documentElement), edge = 12, chart = element.querySelector(".chart"), w = +chart.dataset.drawn.match(/\d+/)[0];
    const heading = element.closest("section").querySelector("h2").textContent, title = `${figure.title}, ${heading}`;
    const point = workload.cells.find((cell) => cell.point === workload.point)?.label ?? "", parts = [];
    let [x, y] = [edge, 42];
    for (const entry of element.querySelectorAll(".legend > :not(.tools, [aria-pressed=false])")) {
      const wide = 30 + widthOf(entry.textContent);
      if (x > edge && x + wide > w) [x, y] = [edge, y + 18];
      const mark = entry.querySelector("svg").cloneNode(true);
      for (const [name, v] of [["x", x], ["y", y - 10]]) mark.setAttribute(name, v);
      parts.push(mark, html("text", { x: x + 28, y, "font-size": 12, fill: "var(--ink)" }, entry.textContent));
      x += wide + 12;
    }
    const top = y + 10, frame = chart.getBoundingClientRect();
    for (const one of chart.children) {
      const copy = one.cloneNode(true), box = one.getBoundingClientRect();
      copy.querySelector("style")?.remove();
      for (const [name, v] of [["x", edge + box.left - frame.left], ["y", top + box.top - frame.top]]) copy.setAttribute(name, v);
      parts.push(copy);
    }
    const h = top + frame.height + edge;
    const outer = html("svg", { viewBox: `0 0 ${w + 2 * edge} ${h}`, width: w + 2 * edge, height: h, "font-family": "var(--sans)" },
      html("title", {}, title), html("desc", {}, `${figure.description} ${point}`), html("rect", { width: "100%", height: "100%", fill: "var(--paper)" }),
      html("text", { x: edge, y: 22, "font-size": 14, "font-weight": 600, fill: "var(--ink)" }, clip(title, w, 14, 600)), ...parts);
    const text = new XMLSerializer().serializeToString(outer);
    // XML knows no control characters, not even escaped.
    return text.replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/g, "\ufffd").replace(/var\((--[a-z0-9-]+)\)/g, (_, name) => style.getPropertyValue(name).trim().replaceAll('"', "'"));
  }
  function save(name, type, text) {
    const url = URL.createObjectURL(new Blob([text], { type })), link = html("a", { href: url, download: name });
    link.click();
    setTimeout(() => URL.revokeObjectURL(url), 1000);
  }

  // ---- start -------------------------------------------------------------------------------
  const all = [...document.querySelectorAll("figure")];
  document.addEventListener("click", (event) => {
    const target = event.target.closest("button, a.moment");
    if (!target) return;
    const { save: kind, point, workload, rowOf, zoom, row, at } = target.dataset;
    const element = at == null ? target.closest("figure") : document.querySelector(target.getAttribute("href")), view = views.get(element?.id);
    if (kind === "svg") save(`${element.id}.svg`, "image/svg+xml", svg(view, element));
    else if (kind) save(`${element.id}.csv`, "text/csv", csv(view));
    else if (point) {
      choosePoint(data.workloads[workload], +point);
      const [first] = data.workloads[workload].figures;
      if (first) changed(document.getElementById(first.id));
      drawAll();
    } else if (rowOf) {
      if (!view.off.delete(rowOf)) view.off.add(rowOf);
      changed(element);
    } else if (zoom) zoomBy(element, zoom);
    else if (at && view) {
      // To the row alone, at the second.
      event.preventDefault();
      const cell = view.workload.byLabel.get(row);
      choosePoint(view.workload, cell.point);
      Object.assign(view, { off: new Set(view.workload.cells.filter((other) => other.point === cell.point && other !== cell).map((other) => other.row)), zoom: null, at: +at });
      changed(element);
      element.scrollIntoView({ behavior: "instant" });
      // Figures above it may have been drawn meanwhile.
      requestAnimationFrame(() => requestAnimationFrame(() => element.scrollIntoView({ behavior: "instant" })));
      drawAll();
    }
  });
  // Title and time as the reader's clock has them: the title names the file of a printed page.
  const moment = document.querySelector("time"), when = new Date(moment.dateTime);
  if (!Number.isNaN(when.getTime())) {
    const two = (n) => String(n).padStart(2, "0");
    const local = `${when.getFullYear()}-${two(when.getMonth() + 1)}-${two(when.getDate())} ${two(when.getHours())}:${two(when.getMinutes())}`;
    moment.textContent = local;
    document.title = `${document.querySelector("h1").textContent} ${local} pubgauge`;
  }
  const file = decodeURIComponent(location.pathname).split("/").filter(Boolean).slice(-2).join("/");
  if (file) document.getElementById("file").textContent = ` · ${file}`;
  // Figures are drawn as they come near, because each one that is drawn has a long page laid out anew.
  const near = new Set(), wasDrawn = (element) => element.querySelector(".chart").dataset.drawn;
  const drawAll = () => all.filter((element) => near.has(element) || wasDrawn(element)).forEach((element) => render(element));
  const watch = new IntersectionObserver((entries) => {
    for (const { target, isIntersecting } of entries) isIntersecting ? near.add(target) : near.delete(target);
    near.forEach((element) => render(element));
    document.documentElement.dataset.drawn = "yes";
  }, { rootMargin: "600px" });
  all.forEach((element) => watch.observe(element));
  if (!all.length) document.documentElement.dataset.drawn = "yes";
  restore();
  addEventListener("hashchange", restore);
  let pending = 0;
  addEventListener("resize", () => {
    cancelAnimationFrame(pending);
    pending = requestAnimationFrame(drawAll);
  });
  // On paper the columns have one width, whatever the window's was.
  addEventListener("beforeprint", () => {
    paper = true;
    all.forEach((element) => render(element, element.classList.contains("wide") ? 700 : 335));
  });
  addEventListener("afterprint", () => {
    paper = false;
    drawAll();
  });
})();
