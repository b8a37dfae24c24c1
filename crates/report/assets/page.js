// Draws the figures of the page from the data inside it, and saves them. Everything else on the
// page (words, tables) is there without this script.
"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const figures = new Map();
  for (const workload of data.workloads) {
    workload.point = 0;
    workload.byLabel = new Map(workload.cells.map((cell) => [cell.label, cell]));
    for (const figure of workload.figures) figures.set(figure.id, { figure, workload });
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
  const unique = (list) => [...new Set(list)];

  // On paper everything is a little lower.
  let paper = false;
  const tall = (screen, print) => (paper ? print : screen);

  // ---- drawing -----------------------------------------------------------------------------
  const el = (name, attributes = {}, ...children) => {
    const node = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, v] of Object.entries(attributes)) {
      if (v == null) continue;
      if (typeof v === "number" && !Number.isFinite(v)) throw new Error(`${name} ${key} is ${v}`);
      node.setAttribute(key, typeof v === "number" ? +v.toFixed(2) : v);
    }
    node.append(...children.filter((child) => child != null));
    return node;
  };
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

  // A sheet to draw on that knows where words stand, so that none is put over another.
  function sheet(width, height) {
    const root = el("svg", { width, height, viewBox: `0 0 ${width} ${height}`, "font-family": "var(--sans)" });
    const taken = [];
    const box = (x, y, w, size, anchor) => {
      const left = anchor === "end" ? x - w : anchor === "middle" ? x - w / 2 : x;
      return { left, right: left + w, top: y - size * 0.78, bottom: y + size * 0.26 };
    };
    const self = {
      root, width, height,
      // Keeps words away from a mark.
      block: (x1, y1, x2, y2) => taken.push({ left: Math.min(x1, x2), right: Math.max(x1, x2), top: Math.min(y1, y2), bottom: Math.max(y1, y2) }),
      add: (...nodes) => root.append(...nodes),
      text(x, y, words, { anchor, size = 12, weight, fill = "var(--ink)", title, halo } = {}) {
        taken.push(box(x, y, widthOf(words, size, weight), size, anchor));
        const look = halo ? { stroke: "var(--paper)", "stroke-width": 4, "paint-order": "stroke" } : {};
        const node = el("text", { x, y, "text-anchor": anchor, "font-size": size, "font-weight": weight, fill, ...look }, words);
        if (title) node.append(el("title", {}, title));
        root.append(node);
      },
      // Puts words at the first of some spots that is free; leaves them out if none is.
      label(words, spots, options = {}) {
        const size = options.size ?? 12;
        for (const [x, y, anchor] of spots) {
          const b = box(x, y, widthOf(words, size, options.weight), size, anchor);
          const free = b.left >= 0 && b.right <= self.width && taken.every((t) => t.right + 3 < b.left || t.left - 3 > b.right || t.bottom + 1 < b.top || t.top - 1 > b.bottom);
          if (free) return self.text(x, y, words, { ...options, anchor, halo: true });
        }
      },
    };
    return self;
  }

  const linear = (low, high, from, to) => Object.assign((v) => from + ((v - low) / (high - low || 1)) * (to - from), { low, high, from, to });
  const log = (low, high, from, to) => {
    const inner = linear(Math.log10(low), Math.log10(high), from, to);
    return Object.assign((v) => inner(Math.log10(Math.max(v, low))), { low, high, from, to });
  };
  const ticks = (high, count) => {
    const rough = high / Math.max(1, count), power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((s) => s * power).find((s) => s >= rough * 0.999);
    return Array.from({ length: Math.floor(high / step + 1e-9) + 1 }, (_, i) => +(i * step).toPrecision(12));
  };
  // The same of an axis that begins elsewhere.
  const between = ({ low, high }, count) => {
    const [, step] = ticks(high - low, count);
    return step ? Array.from({ length: Math.ceil(high / step) + 1 }, (_, i) => +(i * step).toPrecision(12)).filter((v) => v >= low && v <= high) : [low];
  };
  const logTicks = ({ low, high, from, to }) => {
    const decades = Math.log10(high / low), room = Math.abs(to - from) / decades;
    const steps = room > 110 ? [1, 2, 5] : room > 44 ? [1, 3] : [1], all = [];
    const every = Math.max(1, Math.ceil(20 / room));
    for (let e = Math.floor(Math.log10(low)); e <= Math.ceil(Math.log10(high)); e++)
      for (const s of steps) { const v = +(s * 10 ** e).toPrecision(3); if (e % every === 0 && v >= low * 0.999 && v <= high * 1.001) all.push(v); }
    return all;
  };
  // Bounds of a log axis around positive values, at least a decade apart.
  const around = (values) => {
    const some = values.filter((v) => v > 0);
    if (!some.length) return [1e3, 1e4];
    let low = Math.min(...some) / 1.3, high = max(some) * 1.3;
    if (high / low < 10) { const mid = Math.sqrt(low * high); low = mid / 3.2; high = mid * 3.2; }
    return [low, high];
  };

  const grid = (s, x1, y1, x2, y2, strong) => s.add(el("line", { x1, y1, x2, y2, stroke: strong ? "var(--soft)" : "var(--faint)", "stroke-width": 1 }));
  function yAxis(s, y, values, words, left, right) {
    for (const v of values) {
      grid(s, left, y(v), right, y(v));
      s.text(left - 6, y(v) + 4, words(v), { anchor: "end", size: 11, fill: "var(--soft)" });
    }
  }
  function xAxis(s, x, values, words, top, bottom, name) {
    for (const v of values) grid(s, x(v), top, x(v), bottom);
    for (const v of values) s.label(words(v), [[x(v), bottom + 15, "middle"]], { size: 11, fill: "var(--soft)" });
    if (name) s.text((x.from + x.to) / 2, bottom + 31, name, { anchor: "middle", size: 11, fill: "var(--soft)" });
  }
  const path = (s, points, look, width = 2, extra = {}) =>
    points.length && s.add(el("path", { d: "M" + points.map(([a, b]) => `${a.toFixed(1)},${b.toFixed(1)}`).join("L"), fill: "none", stroke: look.stroke, "stroke-dasharray": look.dash, "stroke-width": width, "stroke-linejoin": "round", ...extra }));
  // A value stands until the next; or stands for the time before it.
  const stairs = (points) => points.flatMap(([x, y], i) => (i ? [[x, points[i - 1][1]], [x, y]] : [[x, y]]));

  const before = (points, start) => points.flatMap(([x, y], i) => [[i ? points[i - 1][0] : start, y], [x, y]]);

  // An interval; an end that leaves the plot becomes an arrow.
  function interval(s, at, low, high, scale, upright, stroke, opacity = 1) {
    const inside = (v) => Math.min(Math.max(v, scale.low), scale.high);
    const [a, b] = [scale(inside(low)), scale(inside(high))];
    const point = (along, across) => (upright ? [at + across, along] : [along, at + across]);
    const line = (p, q) => s.add(el("line", { x1: p[0], y1: p[1], x2: q[0], y2: q[1], stroke, opacity, "stroke-width": 1.4 }));
    line(point(a, 0), point(b, 0));
    for (const [end, v, sign] of [[a, low, Math.sign(a - b)], [b, high, Math.sign(b - a)]]) {
      if (v === inside(v)) line(point(end, -3.5), point(end, 3.5));
      else s.add(el("path", { d: "M" + [point(end + sign * 7, 0), point(end, -4.5), point(end, 4.5)].join("L") + "Z", fill: stroke, opacity, "data-leaves": "yes" }, el("title", {}, "the interval goes on beyond the plot")));
    }
  }

  // ---- rows --------------------------------------------------------------------------------
  const colours = ["--s0", "--s1", "--s2", "--s3", "--s4", "--s5", "--s6", "--s7"];
  const noise = { row: data.noise, look: { stroke: "var(--noise)", dash: "1 3" } };
  function look(workload, cell) {
    if (cell.look) return cell.look;
    // Rows of one system share its colour and differ by dashes.
    const siblings = workload.cells.filter((other) => other.point === cell.point && other.colour === cell.colour);
    const nth = siblings.indexOf(cell) + Math.floor(cell.colour / colours.length);
    const dash = [null, "8 3", "3 3", "10 3 2 3"][nth % 4];
    return (cell.look = cell.reference ? { stroke: "var(--reference)", dash: dash ?? "6 3" } : { stroke: `var(${colours[cell.colour % colours.length]})`, dash });
  }
  // Rows as objects with their cell and its look; those of the point that is shown, unless all.
  function objects(figure, workload, all) {
    const rows = figure.rows.map((row) => Object.fromEntries(figure.columns.map((name, i) => [name, row[i]])));
    for (const row of rows) {
      row.cell = row.row === data.noise ? noise : workload.byLabel.get(row.row);
      row.look = look(workload, row.cell);
      row.invalid = row.verdict && row.verdict !== "valid";
    }
    return all ? rows : rows.filter((row) => row.cell === noise || row.cell.point === workload.point);
  }
  const byCell = (rows) => {
    const groups = new Map();
    for (const row of rows) groups.set(row.cell, [...(groups.get(row.cell) ?? []), row]);
    return groups;
  };
  const named = (row) => row.cell.row + (row.invalid ? ` · ${row.verdict}` : "");
  const faded = (row) => (row.invalid ? 0.45 : 1);

  function legend(s, rows, y, left = 0) {
    let x = left, line = 0;
    for (const row of rows) {
      const words = clip(named(row), s.width - left - 34);
      const wide = 28 + widthOf(words);
      if (x > left && x + wide > s.width) { x = left; line++; }
      const at = y + line * 18;
      s.add(el("line", { x1: x, x2: x + 22, y1: at - 4, y2: at - 4, stroke: row.look.stroke, "stroke-width": 2.5, "stroke-dasharray": row.look.dash, opacity: faded(row) }));
      s.text(x + 28, at, words, { fill: row.invalid ? "var(--warn)" : "var(--ink)" });
      x += wide + 16;
    }
    return (line + 1) * 18;
  }
  const legendHeight = (rows, width) => legend(sheet(width, 1), rows, 0);
  const firsts = (rows) => [...byCell(rows).values()].map((group) => group[0]);

  // ---- charts ------------------------------------------------------------------------------
  // Percentiles by their nines: 0, 90, 99, 99.9 % are equally far apart, as HdrHistogram draws them.
  function percentiles(figure, workload, width) {
    const rows = objects(figure, workload), groups = byCell(rows);
    const nines = (share) => -Math.log10(1 - share);
    const dots = rows.filter((d) => d.percentile), curve = rows.filter((d) => !d.percentile && d.share < 1);
    const most = Math.min(5, Math.max(2.05, max(dots, (d) => nines(d.share)) + 0.05, max(curve, (d) => nines(d.share))));
    let [low, high] = around(rows.filter((d) => d.percentile || nines(d.share) <= most).map((d) => d.latency_ns));
    // A bound near what is measured belongs into the plot; a far one is named at its edge.
    const lines = figure.lines.filter((l) => l.value > low / 30);
    for (const l of lines) if (l.value < high * 30) high = Math.max(high, l.value * 1.5), low = Math.min(low, l.value / 1.5);
    const widest = max([...groups.keys()], (cell) => widthOf(cell.row, 12, 600));
    // Wide enough, the names fit before the figures of the median.
    const p50 = 0.301 / most, wanted = (widest + 64 - p50 * (width - 14)) / (1 - p50);
    const left = width > 600 ? Math.min(190, Math.max(52, wanted)) : 52;
    const own = left < wanted, each = own ? tall(34, 27) : tall(20, 17);
    const top = 12, plot = tall(Math.round(Math.max(190, Math.min(330, width * 0.36))), width < 600 ? 120 : 165), bottom = top + plot;
    const s = sheet(width, bottom + 30 + groups.size * each);
    const x = linear(0, most, left, width - 14), y = log(low, high, bottom, top);
    yAxis(s, y, logTicks(y), briefTime, left, x.to);
    const marks = [["0", 0], ["50", 0.5], ["90", 0.9], ["99", 0.99], ["99.9", 0.999], ["99.99", 0.9999]].filter(([, q]) => nines(q) <= most);
    for (const [words, q] of marks) {
      grid(s, x(nines(q)), top, x(nines(q)), bottom);
      s.label(words + " %", [[x(nines(q)), bottom + 16, "middle"], [x(nines(q)), bottom + 18, "start"]], { size: 11, fill: "var(--soft)" });
    }
    for (const l of lines) {
      const share = { p50: 0.5, p90: 0.9, p99: 0.99, p99_9: 0.999, p99_99: 0.9999 }[l.of.split(".")[1]];
      const at = Math.max(top, y(Math.min(l.value, high)));
      const words = l.value > high ? `${l.label} (far above)` : l.label;
      if (l.value <= high) s.add(el("line", { x1: left, x2: x.to, y1: at, y2: at, stroke: "var(--bad)", "stroke-width": 1.5, "stroke-dasharray": "6 4" }));
      if (share && l.value <= high) s.add(el("circle", { cx: x(nines(share)), cy: at, r: 5, fill: "none", stroke: "var(--bad)", "stroke-width": 2 }));
      s.label(words, [[left + 6, at - 6, "start"], [left + 6, at + 14, "start"], [x.to - 4, at - 6, "end"]], { size: 11, fill: "var(--bad)" });
    }
    let line = bottom + 24;
    let nth = 0;
    for (const [cell, list] of groups) {
      const first = list[0], stroke = first.look.stroke;
      // Intervals of several rows stand side by side.
      const aside = cell === noise ? 0 : (nth++ - (groups.size - 2) / 2) * 4;
      const own_curve = list.filter((d) => !d.percentile && d.share < 1 && nines(d.share) <= most);
      const floor = own_curve.length ? [[x(0), y(own_curve[0].latency_ns)]] : [];
      path(s, [...floor, ...own_curve.map((d) => [x(nines(d.share)), y(d.latency_ns)])], first.look, cell === noise ? 1.5 : 2.2, { opacity: faded(first) });
      for (const d of list.filter((d) => d.percentile && d.latency_ns > 0)) {
        if (d.low_ns != null) interval(s, x(nines(d.share)) + aside, d.low_ns, d.high_ns, y, true, stroke, 0.55);
        s.add(el("circle", { cx: x(nines(d.share)), cy: y(d.latency_ns), r: cell === noise ? 2.5 : 4, fill: d.invalid ? "var(--paper)" : stroke, stroke, "stroke-width": 1.6 }, el("title", {}, `${named(d)}: ${d.percentile} ${time(d.latency_ns)}`)));
      }
      // The figures stand below their percentiles, the name before or above them.
      grid(s, 0, line, width, line);
      const base = line + (own ? each - tall(6, 2) : 13);
      s.add(el("line", { x1: 0, x2: 20, y1: line + 9, y2: line + 9, stroke, "stroke-width": 2.5, "stroke-dasharray": first.look.dash, opacity: faded(first) }));
      s.text(26, line + 13, clip(own ? named(first) : cell.row, width - 30, 12, 600), { weight: 600, fill: first.invalid ? "var(--warn)" : "var(--ink)", title: named(first) });
      for (const d of list.filter((d) => d.percentile))
        s.label(time(d.latency_ns), [[x(nines(d.share)), base, "middle"], [x.to, base, "end"]], { fill: cell === noise || d.invalid ? "var(--soft)" : "var(--ink)", size: width < 420 ? 10.5 : 12 });
      line += each;
    }
    return s.root;
  }

  function ecdf(figure, workload, width) {
    const rows = objects(figure, workload).filter((d) => d.latency_ns > 0), heads = firsts(rows);
    const keys = legendHeight(heads, width), top = keys + 10, bottom = top + tall(Math.round(Math.max(180, Math.min(280, width * 0.45))), 140);
    const s = sheet(width, bottom + 38);
    legend(s, heads, 12);
    const [low, high] = around(rows.map((d) => d.latency_ns));
    const x = log(low, high, 40, width - 14), y = linear(0, 1, bottom, top);
    yAxis(s, y, [0, 0.25, 0.5, 0.75, 1], (v) => v * 100 + " %", 40, x.to);
    xAxis(s, x, logTicks(x), briefTime, top, bottom, "latency");
    for (const [cell, list] of byCell(rows))
      path(s, stairs([[x(list[0].latency_ns), y(0)], ...list.map((d) => [x(d.latency_ns), y(d.share)])]), list[0].look, cell === noise ? 1.5 : 2.2, { opacity: faded(list[0]) });
    return s.root;
  }

  // Bars under names: works at any width. A bar is drawn by `bar(row, y, s, x)`.
  function bars(groups, width, domain, words, axis, head, bar) {
    const step = tall(38, 31), top = head + 4, bottom = top + groups.length * step;
    const s = sheet(width, bottom + 22);
    const x = linear(0, domain || 1, 0, width - 16);
    xAxis(s, x, ticks(domain || 1, Math.max(3, width / 110)), axis, top, bottom);
    groups.forEach((group, i) => {
      const at = top + i * step, amount = words(group, width);
      const room = width - widthOf(amount) - 16;
      s.text(0, at + 15, clip(named(group[0]), room, 12, 600), { weight: 600, fill: group[0].invalid ? "var(--warn)" : "var(--ink)", title: named(group[0]), halo: true });
      s.text(width, at + 15, amount, { anchor: "end", halo: true });
      bar(group, at + 21, s, x);
    });
    return s;
  }

  function throughput(figure, workload, width) {
    const groups = [...byCell(objects(figure, workload)).values()].sort((a, b) => b[0].delivered_msgs_per_s - a[0].delivered_msgs_per_s);
    const all = groups.map((g) => g[0]), lines = figure.lines.filter((l) => l.value > 0);
    const most = Math.max(max(all, (d) => d.high_msgs_per_s ?? d.delivered_msgs_per_s), max(all, (d) => (workload.flatOut ? 0 : d.due_msgs_per_s)), max(lines, (l) => l.value));
    const half = (d) => (d.low_msgs_per_s != null && d.delivered_msgs_per_s > 0 ? ` ±${digits(((d.high_msgs_per_s - d.delivered_msgs_per_s) / d.delivered_msgs_per_s) * 100)} %` : "");
    const words = ([d], width) => {
      const short = rate(d.delivered_msgs_per_s) + (d.bound.startsWith("or more") ? " or more" : "");
      const long = rate(d.delivered_msgs_per_s) + half(d);
      return width < 420 ? short : long + (d.bound ? ` ${d.bound.split(" (")[0]}` : "");
    };
    const s = bars(groups, width, most * 1.06, words, (v) => brief(v), lines.length ? 18 : 0, ([d], y, s, x) => {
      const end = x(d.delivered_msgs_per_s), open = d.bound.startsWith("or more");
      s.add(el("rect", { x: 0, y, width: Math.max(1, end), height: 11, fill: d.look.stroke, opacity: d.bound === "" && d.invalid ? 0.3 : d.bound.startsWith("under") ? 0.55 : 0.9 }, el("title", {}, `${named(d)}: ${rate(d.delivered_msgs_per_s)} ${d.bound}`)));
      // A lower bound goes on.
      if (open) for (const i of [0, 1, 2]) s.add(el("path", { d: `M${end + 3 + i * 5},${y + 1}l4.5,4.5l-4.5,4.5`, fill: "none", stroke: d.look.stroke, "stroke-width": 1.6, opacity: 0.9 - i * 0.25 }));
      if (d.low_msgs_per_s != null) interval(s, y + 5.5, d.low_msgs_per_s, d.high_msgs_per_s, x, false, "var(--ink)");
      if (!workload.flatOut && d.due_msgs_per_s) s.add(el("line", { x1: x(d.due_msgs_per_s), x2: x(d.due_msgs_per_s), y1: y - 3, y2: y + 14, stroke: "var(--soft)", "stroke-width": 2 }, el("title", {}, `due: ${rate(d.due_msgs_per_s)}`)));
    });
    const x = linear(0, most * 1.06, 0, width - 16);
    for (const l of lines) {
      s.add(el("line", { x1: x(l.value), x2: x(l.value), y1: 16, y2: s.height - 22, stroke: "var(--bad)", "stroke-width": 1.5, "stroke-dasharray": "6 4" }));
      s.label(l.label, [[x(l.value), 11, x(l.value) > width / 2 ? "end" : "start"]], { size: 11, fill: "var(--bad)" });
    }
    return s.root;
  }

  // Parts of a whole: the system's own in full colour, the client's paler.
  function stacked(figure, workload, width, of, unit) {
    const opacity = { system: 0.95, publishers: 0.5, client: 0.35, subscribers: 0.25 };
    const value = (d) => d[of] ?? 0, total = (group) => group.reduce((sum, d) => sum + value(d), 0);
    const groups = [...byCell(objects(figure, workload)).values()].sort((a, b) => total(a) - total(b));
    const parts = unique(groups.flat().map((d) => d.part));
    const words = (group, width) => {
      const all = group.map((d) => `${d.part} ${unit(value(d))}`).join(" · ");
      return group.length > 1 && widthOf(all) + widthOf(named(group[0]), 12, 600) + 24 < width ? all : unit(total(group));
    };
    const most = max(groups, total) * 1.05 || 1;
    // In KiB, MiB or GiB the marks are round.
    const base = of === "rss_bytes" ? 1024 ** Math.floor(Math.log(most) / Math.log(1024)) : 1;
    const s = bars(groups, width, most / base, words, (v) => (base > 1 ? unit(v * base).replace(/\.0+ /, " ") : unit(v).replace(/\.0+ /, " ")), 20, (group, y, s, x) => {
      let at = 0;
      for (const d of group) {
        const wide = x(value(d) / base);
        s.add(el("rect", { x: at, y, width: Math.max(0, wide - 1), height: 11, fill: d.look.stroke, opacity: opacity[d.part] * (d.invalid ? 0.5 : 1) }, el("title", {}, `${named(d)}, ${d.part}: ${unit(value(d))}`)));
        at += wide;
      }
    });
    let x = 0;
    for (const part of parts) {
      s.add(el("rect", { x, y: 3, width: 11, height: 11, fill: "var(--ink)", opacity: opacity[part] }));
      s.text(x + 16, 12, part, { size: 11, fill: "var(--soft)" });
      x += widthOf(part, 11) + 34;
    }
    return s.root;
  }
  const cpu = (figure, workload, width) => stacked(figure, workload, width, "cpu_us_per_msg", (us) => time(us * 1e3));
  const memory = (figure, workload, width) => stacked(figure, workload, width, "rss_bytes", bytes);

  function series(figure, workload, width) {
    const rows = objects(figure, workload), groups = [...byCell(rows).values()];
    const end = Math.max(max(rows, (d) => d.t_s), max(figure.marks, (m) => m.to_s), 0.1);
    const panels = [
      ["deliveries per second", [["delivered_msgs_per_s", 2, 1]], brief],
      ["latency: p50 thick, p99 thin", [["latency_p50_ns", 2.2, 1], ["latency_p99_ns", 1, 0.9]], briefTime, true],
      ["backlog, messages (dotted: held back before the system)", [["backlog_msgs", 1.8, 1], ["held_back_msgs", 1.4, 1, "1 3"]], brief],
      ["processor cores: system thick, clients thin", [["system_cpu_cores", 2.2, 1], ["publishers_cpu_cores", 1, 0.9], ["subscribers_cpu_cores", 1, 0.9, "4 2"]], brief],
    ];
    const beside = width > 560 ? 2 : 1, lines = panels.length / beside, wide = width / beside;
    const keys = legendHeight(firsts(rows), width), step = tall(width > 560 ? 124 : 98, 80);
    const s = sheet(width, keys + lines * step + 40);
    legend(s, firsts(rows), 12);
    panels.forEach(([name, columns, words, isLog], i) => {
      const line = Math.floor(i / beside), left = (i % beside) * wide + 46 + (i % beside ? 8 : 0), last = line === lines - 1;
      const x = linear(0, end, left, left + wide - 62), top = keys + line * step + 26, bottom = keys + (line + 1) * step;
      for (const mark of figure.marks) {
        s.add(el("rect", { x: x(mark.from_s), y: top, width: x(mark.to_s) - x(mark.from_s), height: bottom - top, fill: "var(--ink)", opacity: 0.06 }, el("title", {}, mark.label)));
        if (i === 0 && x(mark.to_s) - x(mark.from_s) > widthOf(mark.label, 11)) s.label(mark.label, [[(x(mark.from_s) + x(mark.to_s)) / 2, top + 11, "middle"]], { size: 11, fill: "var(--soft)" });
      }
      const values = rows.flatMap((d) => columns.map(([column]) => d[column])).filter((v) => v != null);
      const y = isLog ? log(...around(values), bottom, top) : linear(0, Math.max(max(values), columns[0][0].endsWith("_msgs") ? 3 : 0.01) * 1.06, bottom, top);
      s.text(left - 46, top - 7, clip(name, wide - 16, 11), { size: 11, fill: "var(--soft)" });
      yAxis(s, y, isLog ? logTicks(y) : ticks(y.high, 3), words, left, x.to);
      if (last) xAxis(s, x, ticks(end, wide / 80), (v) => String(+v.toFixed(3)), top, bottom, "seconds from the start of the measurement");
      for (const group of groups)
        for (const [column, thick, strength, dash] of columns) {
          const known = group.filter((d) => d[column] != null);
          if (column === "held_back_msgs" && !known.some((d) => d[column] > 0)) continue;
          const points = known.map((d) => [x(d.t_s), y(isLog ? Math.max(d[column], y.low) : d[column])]);
          // A backlog is known at the end of each record; all else is of the time before.
          path(s, column.endsWith("_msgs") ? stairs(points) : before(points, x(0)), { ...group[0].look, dash: dash ?? group[0].look.dash }, thick, { opacity: strength * faded(group[0]) });
        }
    });
    return s.root;
  }

  function axis(figure, workload, width) {
    const all = objects(figure, workload, true);
    // The other axes stand at the values of the point that is shown.
    const others = all.find((d) => d.cell.point === workload.point)?.others ?? all[0].others;
    const rows = all.filter((d) => d.others === others).sort((a, b) => a.number - b.number);
    const groups = new Map();
    for (const row of rows) {
      row.look = look(workload, row.cell);
      groups.set(row.cell.row, [...(groups.get(row.cell.row) ?? []), row]);
    }
    const heads = [...groups.values()].map((group) => ({ ...group[0], invalid: false }));
    const keys = legendHeight(heads, width), beside = width > 640;
    const plot = tall(Math.round(Math.max(170, Math.min(260, width * 0.26))), 150), step = plot + 58;
    const s = sheet(width, keys + (beside ? step : 2 * step));
    legend(s, heads, 12);
    const numbers = unique(rows.map((d) => d.number)), positive = Math.min(...numbers) > 0 && max(numbers) / Math.min(...numbers) > 8;
    const panel = (name, columns, isLog, words, index, exact = words) => {
      const left = (beside ? index * (width / 2 + 8) : 0) + 52, right = beside ? (index + 1) * (width / 2) - 8 : width - 14;
      const top = keys + (beside ? 0 : index * step) + 24, bottom = top + plot - 10;
      const lines = figure.lines.filter((l) => columns.some((c) => c.of === l.of));
      const due = workload.flatOut || columns[0].of !== "delivered_msgs_per_s" ? [] : numbers.map((n) => rows.find((d) => d.number === n)).filter((d) => d.due_msgs_per_s > 0);
      const values = [...rows.flatMap((d) => columns.map((c) => d[c.name])), ...due.map((d) => d.due_msgs_per_s)].filter((v) => v != null);
      const [low, high] = around([...values, ...lines.map((l) => l.value).filter((v) => v < max(values) * 30)]);
      const y = isLog ? log(low, high, bottom, top) : linear(0, Math.max(max(values), 1) * 1.08, bottom, top);
      const pad = 14, x = positive ? log(Math.min(...numbers), max(numbers), left + pad, right - pad) : linear(Math.min(...numbers), max(numbers), left + pad, right - pad);
      s.text(left - 52, top - 9, clip(name, right - left + 40, 12, 600), { weight: 600 });
      yAxis(s, y, isLog ? logTicks(y) : ticks(y.high, 4), words, left, right);
      const values_ = new Map(rows.map((d) => [d.number, d.value]));
      xAxis(s, x, numbers, (v) => values_.get(v), top, bottom);
      const asked = lines.filter((l) => l.value <= y.high && l.value >= y.low);
      for (const l of asked) s.add(el("line", { x1: left, x2: right, y1: y(l.value), y2: y(l.value), stroke: "var(--bad)", "stroke-width": 1.5, "stroke-dasharray": "6 4" }));
      path(s, due.map((d) => [x(d.number), y(d.due_msgs_per_s)]), { stroke: "var(--soft)", dash: "2 3" }, 1.5);
      const told = [];
      [...groups.values()].forEach((group, nth) => {
        const aside = (nth - (groups.size - 1) / 2) * 4;
        for (const c of columns) {
          const known = group.filter((d) => d[c.name] != null);
          path(s, known.map((d) => [x(d.number), y(d[c.name])]), group[0].look, c.thick, { opacity: 0.85 });
          for (const d of known) {
            if (d[c.low] != null) {
              interval(s, x(d.number) + aside, d[c.low], d[c.high], y, true, d.look.stroke, 0.55);
              s.block(x(d.number) + aside - 4, y(Math.max(d[c.low], y.low)), x(d.number) + aside + 4, y(Math.min(d[c.high], y.high)));
            }
            s.block(x(d.number) - 5, y(d[c.name]) - 5, x(d.number) + 5, y(d[c.name]) + 5);
            s.add(el("circle", { cx: x(d.number), cy: y(d[c.name]), r: c.thick > 1.5 ? 4.2 : 3, fill: d.invalid ? "var(--paper)" : d.look.stroke, stroke: d.look.stroke, "stroke-width": 1.8 }, el("title", {}, `${d.cell.row}, ${d.value}: ${c.words} ${exact(d[c.name])}${d.invalid ? ", " + d.verdict : ""}`)));
            if (d.invalid && c.thick > 1.5) told.push([d, x(d.number), y(d[c.name])]);
          }
        }
      });
      // Beside their points, between the values of the axis where the intervals leave room.
      const between = numbers.slice(1).map((n, i) => (x(n) + x(numbers[i])) / 2);
      for (const l of asked)
        s.label(l.label, [left + 4 + widthOf(l.label, 11) / 2, ...between].flatMap((at) => [-5, 13].map((down) => [at, y(l.value) + down, "middle"])), { size: 11, fill: "var(--bad)" });
      const wide = groups.size * 2 + 6;
      for (const [d, px, py] of told) {
        const spots = [0, -13, 13, -26, 26].flatMap((down) => [[px - wide, py + 4 + down, "end"], [px + wide, py + 4 + down, "start"]]);
        s.label(d.verdict, [...spots, [px, py - 9, "middle"], [px, py + 18, "middle"]].filter(([at, down, anchor]) => {
          const reach = widthOf(d.verdict, 10.5) * (anchor === "middle" ? 0.5 : 1);
          return down > top && down < bottom && (anchor === "start" || at - reach > left) && (anchor === "end" || at + reach < right);
        }), { size: 10.5, fill: d.look.stroke });
      }
    };
    panel("latency: p99 thick, p50 thin", [
      { name: "p50_ns", low: "p50_low_ns", high: "p50_high_ns", of: "latency_ns.p50", thick: 1.2, words: "p50" },
      { name: "p99_ns", low: "p99_low_ns", high: "p99_high_ns", of: "latency_ns.p99", thick: 2.2, words: "p99" },
    ], true, briefTime, 0, time);
    panel("deliveries per second", [{ name: "delivered_msgs_per_s", low: "low_msgs_per_s", high: "high_msgs_per_s", of: "delivered_msgs_per_s", thick: 2.2, words: "delivered" }], max(rows, (d) => d.delivered_msgs_per_s) / Math.min(...rows.map((d) => d.delivered_msgs_per_s || 1)) > 20, brief, 1);
    return s.root;
  }

  // ---- searches for a limit ----------------------------------------------------------------
  // What a trial told is a shape: filled disc, hollow triangle, square, cross.
  const told = {
    within: { words: "within", stroke: "var(--good)", fill: "var(--good)", d: (x, y, r) => `M${x - r},${y}a${r},${r} 0 1,0 ${2 * r},0a${r},${r} 0 1,0 ${-2 * r},0Z` },
    beyond: { words: "beyond", stroke: "var(--bad)", fill: "var(--paper)", d: (x, y, r) => `M${x},${y - 1.25 * r}L${x + 1.2 * r},${y + 0.9 * r}L${x - 1.2 * r},${y + 0.9 * r}Z` },
    client: { words: "client the limit", stroke: "var(--link)", fill: "var(--link)", d: (x, y, r) => `M${x - r},${y - r}h${2 * r}v${2 * r}h${-2 * r}Z` },
    nothing: { words: "tells nothing", stroke: "var(--soft)", fill: "none", d: (x, y, r) => `M${x - r},${y - r}l${2 * r},${2 * r}M${x - r},${y + r}l${2 * r},${-2 * r}` },
  };
  const ring = (s, x, y, look) => s.add(el("circle", { cx: x, cy: y, r: 8.5, fill: "none", stroke: "var(--ink)", "stroke-width": 1.4, ...look }));
  function mark(s, finding, x, y, { r = 4, title, purpose } = {}) {
    const { stroke, fill, d } = told[finding];
    s.add(el("path", { d: d(+x.toFixed(1), +y.toFixed(1), r), fill, stroke, "stroke-width": 1.8, "stroke-linejoin": "round", "data-finding": title ? finding : null }, title ? el("title", {}, title) : null));
    if (purpose === "long") ring(s, x, y);
    s.block(x - r - 2, y - r - 2, x + r + 2, y + r + 2);
  }
  // Keys of what is drawn, several in a line; gives back their height.
  function keys(s, list, y) {
    let x = 0, line = 0;
    for (const [words, draw] of list) {
      const wide = 26 + widthOf(words, 11);
      if (x && x + wide > s.width) { x = 0; line++; }
      draw(x + 10, y + line * 20 - 4);
      s.text(x + 24, y + line * 20, words, { size: 11, fill: "var(--soft)" });
      x += wide + 12;
    }
    return (line + 1) * 20;
  }
  const searchKeys = (s, rows, at, diagonal) => [
    ...Object.keys(told).filter((f) => rows.some((d) => d.finding === f)).map((f) => [told[f].words, (x, y) => mark(s, f, x, y)]),
    ...(rows.some((d) => d.purpose === "long") ? [["ringed: long", (x, y) => ring(s, x, y, { r: 7 })]] : []),
    ...("low" in at || "high" in at ? [["low" in at && "high" in at ? "95 % interval" : "where the limit lies", (x, y) => band(s, x - 8, x + 8, y - 7, y + 7)]] : []),
    ...("confirmed" in at ? [["confirmed", (x, y) => s.add(el("line", { x1: x, x2: x, y1: y - 8, y2: y + 8, stroke: "var(--ink)", "stroke-width": 2 }))]] : []),
    ...(diagonal ? [["all that was offered", (x, y) => path(s, [[x - 9, y + 6], [x + 9, y - 6]], { stroke: "var(--soft)", dash: "4 3" }, 1.4)]] : []),
  ];
  // The interval of the limit; without an end it goes on to the edge of the plot.
  function band(s, x1, x2, top, bottom, open = []) {
    s.add(el("rect", { x: x1, y: top, width: Math.max(2, x2 - x1), height: bottom - top, fill: "var(--ink)", opacity: 0.1, "data-interval": "yes" }));
    for (const x of [x1, x2].filter((_, i) => !open[i])) s.add(el("line", { x1: x, x2: x, y1: top, y2: bottom, stroke: "var(--soft)", "stroke-width": 1, "stroke-dasharray": "2 2" }));
  }
  function limits(s, x, at, top, bottom) {
    const inside = (v) => x(Math.min(Math.max(v, x.low), x.high));
    if ("low" in at || "high" in at) band(s, inside(at.low ?? x.low), inside(at.high ?? x.high), top, bottom, [!("low" in at), !("high" in at)]);
    if ("confirmed" in at) s.add(el("line", { x1: inside(at.confirmed), x2: inside(at.confirmed), y1: top, y2: bottom, stroke: "var(--ink)", "stroke-width": 2, "data-confirmed": "yes" }));
  }
  // What is common to both figures: rows, unit of the load, scale of the loads, values of the limit.
  function searched(figure, workload, of) {
    const rows = objects(figure, workload), column = figure.columns.find((name) => name.startsWith("load")), unit = column.slice(5);
    const at = Object.fromEntries(figure.lines.filter((l) => ["low", "high", "confirmed"].includes(l.of)).map((l) => [l.of, l.value]));
    const value = of ?? column, loads = [...rows.map((d) => d[value]), ...Object.values(at)].filter((v) => v > 0);
    const least = loads.length ? Math.min(...loads) : 0, far = max(loads) / least > 30;
    const amount = unit === "bytes" ? (b) => (b < 1023.5 ? `${+b.toFixed(0)} B` : bytes(b)) : unit === "msgs_per_s" ? rate : scaled;
    const about = (d, more) => `${d.purpose}${d[column] == null ? "" : ` ${amount(d[column])}`}: ${more}; ${told[d.finding].words}${d.verdict ? `, ${d.verdict}` : ""}`;
    const scale = (from, to) => (far ? log(least / 1.4, max(loads) * 1.4, from, to) : linear(least * 0.9, loads.length ? max(loads) * 1.04 : 1, from, to));
    // Most was measured near the limit: no axis begins at zero.
    const marks = (axis, count) => (far ? logTicks(axis) : between(axis, count));
    return { rows, column, unit, at, far, amount, about, scale, marks };
  }

  function limit(figure, workload, width) {
    const { rows, column, unit, at, far, amount, about, scale, marks } = searched(figure, workload);
    const achieved = figure.columns.find((name) => name.startsWith("achieved"));
    const paced = rows.filter((d) => d[column] != null).sort((a, b) => a[column] - b[column]), flat = rows.filter((d) => d[column] == null);
    const head = keys(sheet(width, 1), searchKeys(sheet(width, 1), rows, at, true), 0);
    const left = 52, slot = flat.length ? 62 : 0, right = width - 14 - slot;
    const top = head + 22, bottom = top + tall(Math.round(Math.max(200, Math.min(300, width * 0.55))), 170);
    const s = sheet(width, bottom + 38);
    keys(s, searchKeys(s, rows, at, true), 12);
    const x = scale(left, right), most = Math.max(max(rows, (d) => d[achieved]), max(paced, (d) => d[column]));
    const some = rows.map((d) => d[achieved]).filter((v) => v > 0);
    const least = far ? Math.min(x.low, ...some) : Math.min(x.low, ...rows.map((d) => d[achieved] * 0.95));
    const y = far ? log(least, most * 1.4, bottom, top) : linear(least, (most || 1) * 1.06, bottom, top);
    const words = (v) => (unit === "bytes" ? amount(v) : brief(v));
    const name = { msgs_per_s: "messages per second", bytes: "payload" }[unit] ?? unit;
    s.text(0, top - 8, `achieved, ${name}`, { size: 11, fill: "var(--soft)" });
    yAxis(s, y, marks(y, 4), words, left, right + slot);
    xAxis(s, x, marks(x, (right - left) / 80), words, top, bottom, `load, ${name}`);
    limits(s, x, at, top, bottom);
    const end = Math.min(x.high, y.high), start = Math.max(x.low, y.low);
    path(s, [[x(start), y(start)], [x(end), y(end)]], { stroke: "var(--soft)", dash: "4 3" }, 1.4);
    const levels = unique(paced.map((d) => d[column])).map((load) => {
      const alike = paced.filter((d) => d[column] === load);
      return [x(load), y(alike.reduce((sum, d) => sum + d[achieved], 0) / alike.length)];
    });
    path(s, levels, { stroke: "var(--soft)" }, 1.2, { opacity: 0.7 });
    const lasted = (d) => (d.measured_s == null ? "" : ` over ${+d.measured_s.toPrecision(3)} s`);
    // Long ones on top, so that their rings are whole.
    for (const d of [...paced].sort((a, b) => (a.purpose === "long") - (b.purpose === "long")))
      mark(s, d.finding, x(d[column]), y(d[achieved]), { purpose: d.purpose, title: about(d, `${amount(d[achieved])} achieved${lasted(d)}`) });
    if (flat.length) {
      s.add(el("line", { x1: right + 8, x2: right + 8, y1: top, y2: bottom, stroke: "var(--soft)", "stroke-width": 1 }));
      s.text(right + 8 + slot / 2, bottom + 15, "flat out", { anchor: "middle", size: 11, fill: "var(--soft)" });
      for (const d of flat) mark(s, d.finding, right + 8 + slot / 2, y(d[achieved]), { title: about(d, `${amount(d[achieved])} achieved${lasted(d)}`) });
    }
    return s.root;
  }

  function latencyOverLoad(figure, workload, width) {
    const share = figure.rows.some((row) => row[figure.columns.indexOf("load_share")] != null);
    const { rows, column, unit, at, amount, about, scale, marks } = searched(figure, workload, share ? "load_share" : null);
    const of = share ? "load_share" : column;
    const list = (s) => [...searchKeys(s, rows, at, false), ["p50", (x, y) => s.add(el("circle", { cx: x, cy: y, r: 2.6, fill: "var(--paper)", stroke: "var(--ink)", "stroke-width": 1.4 }))]];
    const head = keys(sheet(width, 1), list(sheet(width, 1)), 0);
    const left = 52, right = width - 14, top = head + 22, bottom = top + tall(Math.round(Math.max(200, Math.min(300, width * 0.55))), 170);
    const s = sheet(width, bottom + 38);
    keys(s, list(s), 12);
    const values = rows.flatMap((d) => [d.p50_ns, d.p99_ns]).filter((v) => v > 0);
    const asked = figure.lines.filter((l) => l.of.startsWith("latency_ns"));
    const [low, high] = around([...values, ...asked.map((l) => l.value).filter((v) => v < max(values) * 30)]);
    const x = scale(left, right), y = log(low, high, bottom, top);
    s.text(0, top - 8, "latency: p99, and p50 below", { size: 11, fill: "var(--soft)" });
    yAxis(s, y, logTicks(y), briefTime, left, right);
    const words = share ? (v) => +(v * 100).toPrecision(3) + " %" : unit === "bytes" ? amount : brief;
    xAxis(s, x, marks(x, (right - left) / 70), words, top, bottom, share ? "load, share of the limit" : "load");
    limits(s, x, at, top, bottom);
    for (const d of rows) {
      if (d.p99_ns != null && d.p50_ns != null) s.add(el("line", { x1: x(d[of]), x2: x(d[of]), y1: y(d.p50_ns), y2: y(d.p99_ns), stroke: "var(--soft)", "stroke-width": 1, opacity: 0.5 }));
      s.add(el("circle", { cx: x(d[of]), cy: y(d.p50_ns), r: 2.6, fill: "var(--paper)", stroke: "var(--ink)", "stroke-width": 1.4 }, el("title", {}, about(d, `p50 ${time(d.p50_ns)}`))));
      s.block(x(d[of]) - 4, y(d.p50_ns) - 4, x(d[of]) + 4, y(d.p50_ns) + 4);
    }
    for (const d of rows.filter((d) => d.p99_ns != null)) mark(s, d.finding, x(d[of]), y(d.p99_ns), { purpose: d.purpose, title: about(d, `p99 ${time(d.p99_ns)}`) });
    for (const l of asked.filter((l) => l.value >= low && l.value <= high)) {
      s.add(el("line", { x1: left, x2: right, y1: y(l.value), y2: y(l.value), stroke: "var(--bad)", "stroke-width": 1.5, "stroke-dasharray": "6 4" }));
      s.label(l.label, [[left + 6, y(l.value) - 6, "start"], [left + 6, y(l.value) + 14, "start"]], { size: 11, fill: "var(--bad)" });
    }
    return s.root;
  }

  // ---- claims ------------------------------------------------------------------------------
  const inBytes = (v) => (v < 999.5 ? `${scaled(v)} B/s` : `${scaled(v)}B/s`), few = (v) => +v.toPrecision(6);
  // What figures are measured in: in full, and as briefly as an axis has it.
  const units = {
    ns: [time, (v) => briefTime(few(v))], us: [(v) => time(v * 1e3), (v) => briefTime(few(v * 1e3))], s: [(v) => time(v * 1e9), (v) => briefTime(few(v * 1e9))],
    bytes: [bytes, bytes], bytes_per_s: [inBytes, inBytes], msgs_per_s: [rate, brief], share: [(v) => digits(v * 100) + " %", (v) => +(v * 100).toPrecision(3) + " %"],
  };
  // The figure of each side over the axis.
  function claim(figure, workload, width) {
    const [value, low, high] = ["value", "ci_low", "ci_high"].map((start) => figure.columns.find((name) => name.startsWith(start)));
    const [exact, words] = units[value.slice(6)] ?? [digits, brief];
    const rows = objects(figure, workload), sides = [...byCell(rows).values()];
    // Values of the axis that are no numbers stand in their order.
    const names = unique(rows.map((d) => d.at)), isNumber = rows.every((d) => d.number != null);
    const place = (d) => (isNumber ? d.number : names.indexOf(d.at));
    const numbers = unique(rows.map(place)).sort((a, b) => a - b), first = numbers[0], last = numbers.at(-1);
    // A very wide interval leaves the plot: it must not press everything else together.
    const values = rows.map((d) => d[value]), least = Math.min(...values), most = max(values), reach = Math.max(most - least, Math.abs(most) * 0.5);
    const ends = rows.flatMap((d) => [d[low], d[high]]).filter((v) => v != null);
    const isLog = least > 0 && most / least > 8;
    const all = [...values, ...ends.filter((v) => (isLog ? v > least / 4 && v < most * 4 : v > least - reach && v < most + reach))];
    const top = legendHeight(firsts(rows), width) + 12, bottom = top + tall(Math.round(Math.max(150, Math.min(220, width * 0.42))), 120);
    const bottomValue = Math.min(...all), topValue = max(all), spare = (topValue - bottomValue || Math.abs(topValue) || 1) * 0.08;
    // From zero, unless that would hide the differences.
    const start = bottomValue >= 0 && bottomValue < topValue * 0.5 ? 0 : bottomValue - spare;
    const y = isLog ? log(...around(all), bottom, top) : linear(start, topValue + spare, bottom, top);
    const marks = isLog ? logTicks(y) : between(y, 4), left = Math.max(34, max(marks, (v) => widthOf(words(v), 11)) + 12);
    const s = sheet(width, bottom + 24), pad = 14;
    legend(s, firsts(rows), 12);
    const x = first > 0 && last / first > 8 ? log(first, last, left + pad, width - 2 * pad) : linear(first, last, left + pad, width - 2 * pad);
    yAxis(s, y, marks, words, left, width - 6);
    xAxis(s, x, numbers, (v) => rows.find((d) => place(d) === v).at, top, bottom);
    sides.forEach((side, nth) => {
      const aside = (nth - (sides.length - 1) / 2) * 4, points = [...side].sort((a, b) => place(a) - place(b));
      // No line over a point that is left out.
      let run = [];
      for (const v of [...numbers, NaN]) {
        const d = points.find((d) => place(d) === v);
        if (d) run.push([x(v), y(d[value])]);
        else run = (path(s, run, side[0].look, 2, { opacity: 0.85 }), []);
      }
      for (const d of points) {
        // Without an upper end it is a lower bound: an open circle, and an arrow out of the plot.
        const known = d[low] != null, open = known && d[high] == null;
        if (known) interval(s, x(place(d)) + aside, d[low], d[high] ?? Infinity, y, true, d.look.stroke, 0.7);
        const ends = open ? ` (${exact(d[low])} or more)` : known ? ` (${exact(d[low])} to ${exact(d[high])})` : "";
        s.add(el("circle", { cx: x(place(d)), cy: y(d[value]), r: 3.6, fill: open ? "var(--paper)" : d.look.stroke, stroke: d.look.stroke }, el("title", {}, `${d.cell.row} at ${d.at}: ${exact(d[value])}${ends}`)));
      }
    });
    return s.root;
  }

  const draw = { claim, percentiles, ecdf, axis, throughput, series, times: cpu, bytes: memory, limit, "latency-over-load": latencyOverLoad };

  function render(element, fixed) {
    const { figure, workload } = figures.get(element.id);
    const place = element.querySelector(".chart");
    const width = fixed ?? Math.max(280, Math.floor(place.clientWidth));
    const as = `${width} ${workload.point} ${paper}`;
    if (place.dataset.drawn === as) return;
    place.dataset.drawn = as;
    const chart = draw[figure.kind](figure, workload, width);
    chart.setAttribute("aria-hidden", "true");
    place.replaceChildren(chart);
  }

  // ---- saving ------------------------------------------------------------------------------
  const quote = (text) => (/[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
  function csv(id) {
    const { figure } = figures.get(id);
    const rows = figure.rows.map((row) => row.map((v) => (v === null ? "" : quote(String(v)))).join(","));
    return [figure.columns.join(","), ...rows, ""].join("\r\n");
  }
  // A copy that stands alone: colours resolved, on paper, with its title.
  function svg(id) {
    const element = document.getElementById(id);
    const copy = element.querySelector(".chart svg").cloneNode(true);
    const style = getComputedStyle(document.documentElement);
    const [, , w, h] = copy.getAttribute("viewBox").split(/[\s,]+/).map(Number);
    const top = 34, edge = 12, { figure, workload } = figures.get(id);
    const heading = element.closest("section").querySelector("h2").textContent;
    const point = workload.cells.find((cell) => cell.point === workload.point)?.label ?? "";
    const title = `${figure.title}, ${heading}`;
    for (const [key, v] of Object.entries({ x: edge, y: top, width: w, height: h })) copy.setAttribute(key, v);
    copy.removeAttribute("aria-hidden");
    const outer = el("svg", { viewBox: `0 0 ${w + 2 * edge} ${h + top + edge}`, width: w + 2 * edge, height: h + top + edge },
      el("title", {}, title), el("desc", {}, `${figure.description} ${point}`),
      el("rect", { width: "100%", height: "100%", fill: "var(--paper)" }),
      el("text", { x: edge, y: 22, "font-family": "var(--sans)", "font-size": 14, "font-weight": 600, fill: "var(--ink)" }, clip(title, w, 14, 600)), copy);
    const text = new XMLSerializer().serializeToString(outer);
    // XML knows no control characters, not even escaped.
    return text.replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/g, "\ufffd").replace(/var\((--[a-z0-9-]+)\)/g, (_, name) => style.getPropertyValue(name).trim().replaceAll('"', "'"));
  }
  function save(name, type, text) {
    const url = URL.createObjectURL(new Blob([text], { type }));
    const link = document.createElement("a");
    link.href = url;
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(url), 1000);
  }

  // ---- start -------------------------------------------------------------------------------
  const all = [...document.querySelectorAll("figure")];
  const renderAll = () => all.forEach((element) => render(element));
  document.addEventListener("click", (event) => {
    const { save: kind, point, workload } = event.target.dataset ?? {};
    if (kind) {
      const id = event.target.closest("figure").id;
      if (kind === "svg") save(`${id}.svg`, "image/svg+xml", svg(id));
      else save(`${id}.csv`, "text/csv", csv(id));
    }
    if (point) {
      data.workloads[workload].point = +point;
      for (const button of event.target.parentElement.querySelectorAll("button")) button.setAttribute("aria-pressed", button === event.target);
      renderAll();
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
  renderAll();
  let pending = 0;
  addEventListener("resize", () => {
    cancelAnimationFrame(pending);
    pending = requestAnimationFrame(renderAll);
  });
  // On paper the columns have one width, whatever the window's was.
  addEventListener("beforeprint", () => {
    paper = true;
    all.forEach((element) => render(element, element.classList.contains("wide") ? 700 : 335));
  });
  addEventListener("afterprint", () => {
    paper = false;
    renderAll();
  });
  document.documentElement.dataset.drawn = "yes";
})();
