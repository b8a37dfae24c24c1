// Draws the figures of the page from the data inside it, and saves them. Everything else on the
// page (words, tables) is there without this script.
"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const figures = new Map();
  for (const workload of data.workloads)
    for (const figure of workload.figures) figures.set(figure.id, { figure, workload });

  // ---- words and numbers -------------------------------------------------------------------
  const digits = (v) => (v === 0 ? "0" : Math.abs(v) < 0.01 ? v.toExponential(1) : Math.abs(v) < 9.995 ? v.toFixed(2) : Math.abs(v) < 99.95 ? v.toFixed(1) : v.toFixed(0));
  const scaled = (v) => (v < 999.5 ? (Number.isInteger(v) ? String(v) : digits(v)) : v < 999.5e3 ? digits(v / 1e3) + " k" : v < 999.5e6 ? digits(v / 1e6) + " M" : digits(v / 1e9) + " G");
  const time = (ns) => (ns < 999.5 ? ns.toFixed(0) + " ns" : ns < 999.5e3 ? digits(ns / 1e3) + " µs" : ns < 999.5e6 ? digits(ns / 1e6) + " ms" : digits(ns / 1e9) + " s");
  const short = (v) => (v === 0 ? "0" : v >= 1e6 ? +(v / 1e6).toPrecision(3) + " M" : v >= 1e3 ? +(v / 1e3).toPrecision(3) + " k" : String(+v.toPrecision(3)));
  const tickTime = (ns) => (ns < 1e3 ? ns + " ns" : ns < 1e6 ? ns / 1e3 + " µs" : ns < 1e9 ? ns / 1e6 + " ms" : ns / 1e9 + " s");
  const clip = (text, room) => (text.length > room ? text.slice(0, Math.max(1, room - 1)) + "…" : text);

  // ---- rows --------------------------------------------------------------------------------
  const objects = (figure) => figure.rows.map((row) => Object.fromEntries(figure.columns.map((name, i) => [name, row[i]])));
  const cellsOf = (workload) => new Map(workload.cells.map((cell) => [cell.label, cell]));
  const colours = ["--s0", "--s1", "--s2", "--s3", "--s4", "--s5", "--s6", "--s7"];
  function look(workload, label) {
    if (label === data.noise) return { stroke: "var(--noise)", dash: "1 3" };
    const cell = cellsOf(workload).get(label);
    if (cell.reference) return { stroke: "var(--reference)", dash: "6 4" };
    // Cells of one system share its colour and differ by dashes.
    const siblings = workload.cells.filter((other) => other.colour === cell.colour);
    const nth = siblings.indexOf(cell) + Math.floor(cell.colour / colours.length);
    return { stroke: `var(${colours[cell.colour % colours.length]})`, dash: [null, "8 3", "3 3", "10 3 2 3"][nth % 4] };
  }
  const invalid = (row) => row.verdict && row.verdict !== "valid";

  // ---- drawing -----------------------------------------------------------------------------
  const base = (width) => ({ width, marginLeft: 8, marginRight: 14, style: { background: "none", color: "var(--ink)", fontFamily: "var(--sans)", fontSize: "12px", overflow: "visible" } });
  const halo = { stroke: "var(--paper)", strokeWidth: 4, paintOrder: "stroke" };
  const logTicks = (low, high, width) => {
    const decades = Math.log10(high / low), all = [];
    const steps = decades > 4 || width < 500 ? [1] : decades > 1.5 ? [1, 3] : [1, 2, 5];
    for (let e = Math.floor(Math.log10(low)); e <= Math.ceil(Math.log10(high)); e++)
      for (const s of steps) { const v = s * 10 ** e; if (v >= low * 0.999 && v <= high * 1.001) all.push(v); }
    return all;
  };
  // A log domain around the values, wide enough for at least one decade.
  const logDomain = (values) => {
    const positive = values.filter((v) => v > 0);
    if (!positive.length) return [1, 10];
    let low = d3.min(positive) / 1.25, high = d3.max(positive) * 1.25;
    if (high / low < 10) { const mid = Math.sqrt(low * high); low = mid / 3.2; high = mid * 3.2; }
    return [low, high];
  };
  const timeAxis = (domain, width, label) => ({ type: "log", domain, ticks: logTicks(domain[0], domain[1], width), tickFormat: tickTime, grid: true, label, labelAnchor: "left", labelArrow: "none" });

  // Rows of bars or dots with the name above each: works at any width.
  const bandLabels = (rows, width, right) => [
    Plot.text(rows, { frameAnchor: "left", y: "system", dy: -15, text: (d) => clip(d.system, Math.floor(width / 7) - (right ? 26 : 10)) + (invalid(d) ? `  · ${d.verdict}${width < 520 ? "" : ", not to be quoted"}` : ""), fill: (d) => (invalid(d) ? "var(--warn)" : "var(--ink)"), fontWeight: 600, ...halo }),
  ];
  const bandPlot = (labels, width, x, marks, extra = {}) =>
    Plot.plot({ ...base(width), height: labels.length * 46 + 64, marginTop: extra.marginTop ?? 24, marginBottom: 40, x, y: { type: "band", domain: labels, padding: 0, axis: null }, marks });

  function throughput(figure, workload, width) {
    const all = objects(figure);
    // Flat out the reference broker is the ceiling; at a given rate it is one among others.
    const reference = workload.flatOut ? all.find((d) => cellsOf(workload).get(d.system).reference) : undefined;
    const rows = all.filter((d) => d !== reference).sort((a, b) => b.delivered_msgs_per_s - a.delivered_msgs_per_s);
    const shown = rows.length ? rows : all;
    const most = d3.max(all, (d) => d.ci_high_msgs_per_s ?? d.delivered_msgs_per_s) || 1;
    const labels = shown.map((d) => d.system);
    const ci = shown.filter((d) => d.ci_low_msgs_per_s != null);
    const amount = (d) => scaled(d.delivered_msgs_per_s) + "/s" + (d.ci_low_msgs_per_s != null ? ` ±${digits(((d.ci_high_msgs_per_s - d.ci_low_msgs_per_s) / 2 / d.delivered_msgs_per_s) * 100)} %` : "");
    const right = shown.map((d) => d.delivered_msgs_per_s > most * 0.55);
    return bandPlot(labels, width, { domain: [0, most * 1.08], grid: true, tickFormat: short, ticks: Math.max(3, Math.floor(width / 130)), label: "deliveries per second", labelAnchor: "left", labelArrow: "none" }, [
      Plot.ruleY(shown, { y: "system", x1: 0, x2: "delivered_msgs_per_s", stroke: (d) => look(workload, d.system).stroke, strokeWidth: 12, strokeOpacity: (d) => (invalid(d) ? 0.25 : 0.85) }),
      Plot.ruleY(ci, { y: "system", x1: "ci_low_msgs_per_s", x2: "ci_high_msgs_per_s", stroke: "var(--ink)", strokeWidth: 1.5 }),
      Plot.tickX(ci.flatMap((d) => [[d.system, d.ci_low_msgs_per_s], [d.system, d.ci_high_msgs_per_s]]), { x: "1", y: "0", stroke: "var(--ink)", strokeWidth: 1.5, insetTop: 18, insetBottom: 18 }),
      reference ? [
        Plot.tickX(shown, { x: () => reference.delivered_msgs_per_s, y: "system", stroke: "var(--reference)", strokeDasharray: "4 3", strokeWidth: 2, insetTop: 14, insetBottom: 8 }),
        Plot.text([reference], { x: "delivered_msgs_per_s", frameAnchor: "top", dy: -16, textAnchor: reference.delivered_msgs_per_s > most / 2 ? "end" : "start", text: (d) => `reference broker ${scaled(d.delivered_msgs_per_s)}/s${invalid(d) ? `, ${d.verdict}` : ""}`, fill: "var(--reference)" }),
      ] : [],
      ...bandLabels(shown, width),
      Plot.text(shown, { x: "delivered_msgs_per_s", y: "system", text: amount, textAnchor: "start", filter: (d, i) => !right[i], dx: 12, fill: "var(--ink)", ...halo }),
      Plot.text(shown, { frameAnchor: "right", y: "system", dy: -15, text: amount, filter: (d, i) => right[i], fill: "var(--ink)", ...halo }),
    ], { marginTop: reference ? 40 : 24 });
  }

  function latency(figure, workload, width) {
    const rows = objects(figure);
    const groups = d3.group(rows, (d) => d.system);
    const median = (label) => groups.get(label)[0].latency_ns;
    const labels = [...groups.keys()].filter((l) => l !== data.noise).sort((a, b) => median(a) - median(b));
    if (groups.has(data.noise)) labels.push(data.noise);
    const spans = labels.map((label) => ({ system: label, verdict: groups.get(label)[0].verdict, low: d3.min(groups.get(label), (d) => d.latency_ns), high: d3.max(groups.get(label), (d) => d.latency_ns) }));
    const domain = logDomain(rows.map((d) => d.latency_ns));
    const dots = rows.filter((d) => d.latency_ns > 0);
    // The widest row says which dot is which; the others keep the order.
    const named = d3.greatest(spans.filter((d) => !invalid(d) && d.system !== data.noise), (d) => d.high / d.low) ?? spans[0];
    const pixel = d3.scaleLog(domain, [8, width - 14]);
    let edge = -99;
    const names = dots.filter((d) => d.system === named.system).filter((d) => {
      const fits = pixel(d.latency_ns) - edge > 34;
      if (fits) edge = pixel(d.latency_ns);
      return fits;
    });
    const size = { p50: 6, p90: 4, p99: 5, "p99.9": 3.5, "p99.99": 3 };
    const value = (d, p) => groups.get(d.system).find((r) => r.percentile === p);
    const words = (d) => ["p50", "p99"].map((p) => value(d, p)).filter(Boolean).map((r) => `${r.percentile} ${time(r.latency_ns)}`).join("  ");
    const ci = rows.filter((d) => d.ci_low_ns != null);
    const colour = (d) => look(workload, d.system).stroke;
    return bandPlot(labels, width, timeAxis(domain, width, "latency"), [
      Plot.ruleY(spans, { y: "system", x1: "low", x2: "high", stroke: colour, strokeWidth: 2, strokeOpacity: (d) => (invalid(d) ? 0.3 : 0.7) }),
      Plot.ruleY(ci, { y: "system", x1: (d) => Math.max(d.ci_low_ns, domain[0]), x2: (d) => Math.min(d.ci_high_ns, domain[1]), stroke: colour, strokeWidth: 9, strokeOpacity: 0.22 }),
      Plot.dot(dots, { x: "latency_ns", y: "system", r: (d) => size[d.percentile], fill: (d) => (d.percentile === "p50" && !invalid(d) ? colour(d) : "var(--paper)"), stroke: colour, strokeWidth: 1.8, title: (d) => `${d.system} ${d.percentile}: ${time(d.latency_ns)}` }),
      ...bandLabels(spans, width, true),
      Plot.text(spans, { frameAnchor: "right", y: "system", dy: -15, text: words, fill: "var(--soft)", filter: (d) => !(invalid(d) && width < 520), ...halo }),
      Plot.text(names, { x: "latency_ns", y: "system", dy: 15, text: "percentile", fontSize: 10.5, fill: "var(--soft)", ...halo }),
    ]);
  }

  function legend(workload, labels, width) {
    const items = [];
    let x = 0, line = 0;
    for (const label of labels) {
      const text = clip(label, Math.floor(width / 7.5) - 6);
      const wide = 34 + text.length * 7.1;
      if (x > 0 && x + wide > width) { x = 0; line++; }
      items.push({ label, text, x, line });
      x += wide + 12;
    }
    const height = (line + 1) * 20 + 4;
    const svg = d3.create("svg:svg").attr("width", width).attr("height", height).attr("font-family", "var(--sans)").attr("font-size", 12);
    for (const item of items) {
      const { stroke, dash } = look(workload, item.label);
      const g = svg.append("g").attr("transform", `translate(${item.x + 8},${item.line * 20 + 10})`);
      g.append("line").attr("x2", 22).attr("stroke", stroke).attr("stroke-width", 2.5).attr("stroke-dasharray", dash);
      g.append("text").attr("x", 28).attr("dy", "0.35em").attr("fill", "var(--ink)").text(item.text);
    }
    return { node: svg.node(), height };
  }

  // Several drawings under each other in one SVG.
  function stack(width, parts) {
    const svg = d3.create("svg:svg").attr("width", width);
    let y = 0;
    for (const part of parts) {
      const height = +part.getAttribute("height");
      part.setAttribute("y", y);
      part.setAttribute("overflow", "visible");
      svg.node().append(part);
      y += height;
    }
    return svg.attr("height", y).attr("viewBox", `0 0 ${width} ${y}`).node();
  }

  function ecdf(figure, workload, width) {
    const rows = objects(figure).filter((d) => d.latency_ns > 0);
    const labels = [...new Set(rows.map((d) => d.system))];
    const domain = logDomain(rows.map((d) => d.latency_ns));
    const real = labels.filter((l) => l !== data.noise);
    const pixel = d3.scaleLog(domain, [40, width - 14]);
    // A direct label on each curve, at heights of their own so that they keep apart.
    const named = width < 480 ? [] : real.map((label, i) => {
      const share = 0.14 + (0.72 * (i + 0.5)) / real.length;
      return rows.find((d) => d.system === label && d.share >= share);
    }).filter(Boolean);
    const chart = Plot.plot({
      ...base(width), height: Math.max(260, Math.min(380, width * 0.5)), marginLeft: 40, marginTop: 18, marginBottom: 40,
      x: timeAxis(domain, width, "latency"),
      y: { domain: [0, 1], grid: true, ticks: [0, 0.25, 0.5, 0.75, 0.9, 1], tickFormat: (v) => v * 100 + "%", label: "share of deliveries", labelAnchor: "top", labelArrow: "none" },
      marks: [
        ...labels.map((label) => Plot.line(rows.filter((d) => d.system === label), { x: "latency_ns", y: "share", stroke: look(workload, label).stroke, strokeDasharray: look(workload, label).dash, strokeWidth: label === data.noise ? 1.6 : 2.2, strokeOpacity: invalid(rows.find((d) => d.system === label)) ? 0.4 : 1 })),
        ...["start", "end"].map((anchor) => Plot.text(named.filter((d) => (pixel(d.latency_ns) > width * 0.7 ? "end" : "start") === anchor), { x: "latency_ns", y: "share", text: (d) => clip(d.system, 24) + (invalid(d) ? ` (${d.verdict})` : ""), dx: anchor === "start" ? 7 : -7, textAnchor: anchor, fontWeight: 600, fill: (d) => look(workload, d.system).stroke, ...halo })),
      ],
    });
    return stack(width, [legend(workload, labels, width).node, chart]);
  }

  function series(figure, workload, width) {
    const rows = objects(figure);
    const labels = [...new Set(rows.map((d) => d.system))];
    const end = d3.max(rows, (d) => d.t_s) || 1;
    const panel = (title, columns, y, last) => {
      const lines = labels.flatMap((label) => columns.map(([name, width, opacity]) => ({ label, name, width, opacity, rows: rows.filter((d) => d.system === label && d[name] != null) }))).filter((l) => l.rows.length);
      const values = lines.flatMap((l) => l.rows.map((d) => d[l.name]));
      const log = y === "log";
      const domain = log ? logDomain(values) : [0, (d3.max(values) || 1) * 1.06];
      return Plot.plot({
        ...base(width), height: last ? 168 : 138, marginLeft: 56, marginTop: 26, marginBottom: last ? 38 : 10,
        x: { domain: [0, end], label: last ? "seconds from the start of the measurement" : null, labelAnchor: "left", labelArrow: "none", ticks: Math.floor(width / 90), tickFormat: last ? (v) => String(+v.toFixed(2)) : () => "", tickSize: last ? 4 : 0 },
        y: log ? { type: "log", domain, grid: true, label: null, ticks: logTicks(domain[0], domain[1], 1), tickFormat: tickTime } : { domain, grid: true, ticks: 4, tickFormat: short, label: null },
        marks: [
          workload.duration_s < end - 0.01 ? Plot.rectX([0], { x1: workload.duration_s, x2: end, fill: "var(--ink)", fillOpacity: 0.05 }) : null,
          workload.duration_s < end - 0.01 && title.startsWith("Rate") ? Plot.text([0], { x: workload.duration_s, frameAnchor: "top-left", dx: 5, dy: 3, text: () => "drain", fill: "var(--soft)" }) : null,
          Plot.text([title], { frameAnchor: "top-left", dy: -20, dx: -48, text: (d) => d, fontWeight: 600, fill: "var(--ink)" }),
          ...lines.map((l) => Plot.line(l.rows, { x: "t_s", y: (d) => (log ? Math.max(d[l.name], domain[0]) : d[l.name]), stroke: look(workload, l.label).stroke, strokeDasharray: look(workload, l.label).dash, strokeWidth: l.width, strokeOpacity: l.opacity * (invalid(l.rows[0]) ? 0.55 : 1) })),
        ].filter(Boolean),
      });
    };
    return stack(width, [
      legend(workload, labels, width).node,
      panel("Rate: deliveries per second", [["delivered_msgs_per_s", 2, 1]]),
      panel("Latency: p50 thick, p99 thin", [["latency_p50_ns", 2.2, 1], ["latency_p99_ns", 1, 0.85]], "log"),
      panel("Backlog: messages", [["backlog_msgs", 2, 1]]),
      panel("Processor cores: system thick, clients thin", [["system_cpu_cores", 2.2, 1], ["publishers_cpu_cores", 1, 0.8], ["subscribers_cpu_cores", 1, 0.8]], null, true),
    ]);
  }

  function cpu(figure, workload, width) {
    const rows = objects(figure);
    const groups = d3.group(rows, (d) => d.system);
    const parts = ["system", "publishers", "subscribers"];
    const opacity = { system: 0.95, publishers: 0.55, subscribers: 0.28 };
    const totals = [...groups].map(([system, list]) => ({ system, verdict: list[0].verdict, total: d3.sum(list, (d) => d.cpu_us_per_msg), text: list.map((d) => `${d.part} ${digits(d.cpu_us_per_msg)}`).join("  ") })).sort((a, b) => a.total - b.total);
    const pieces = [];
    for (const [system, list] of groups) {
      let at = 0;
      for (const part of parts) {
        const row = list.find((d) => d.part === part);
        if (!row) continue;
        pieces.push({ ...row, x1: at, x2: at + row.cpu_us_per_msg });
        at += row.cpu_us_per_msg;
      }
    }
    const most = d3.max(totals, (d) => d.total) || 1;
    const colour = (d) => look(workload, d.system).stroke;
    const narrow = width < 520;
    return bandPlot(totals.map((d) => d.system), width, { domain: [0, most * 1.05], grid: true, ticks: Math.max(3, Math.floor(width / 130)), label: "µs of processor time per delivery", labelAnchor: "left", labelArrow: "none" }, [
      Plot.ruleY(pieces, { y: "system", x1: "x1", x2: "x2", stroke: colour, strokeWidth: 12, strokeOpacity: (d) => opacity[d.part] * (invalid(d) ? 0.4 : 1), title: (d) => `${d.system}, ${d.part}: ${digits(d.cpu_us_per_msg)} µs` }),
      Plot.tickX(pieces.filter((d) => d.x1 > 0), { x: "x1", y: "system", stroke: "var(--paper)", strokeWidth: 1.5, insetTop: 17, insetBottom: 17 }),
      ...bandLabels(totals, width, !narrow),
      Plot.text(totals, narrow ? { x: 0, y: "system", dy: 15, textAnchor: "start", text: "text", fill: "var(--soft)", fontSize: 11, ...halo } : { frameAnchor: "right", y: "system", dy: -15, text: "text", fill: "var(--soft)", ...halo }),
    ]);
  }

  function counts(figure, workload, width) {
    const rows = objects(figure);
    const labels = [...new Set(rows.map((d) => d.system))];
    const names = [...new Set(rows.map((d) => d.count))];
    const bad = (d) => d.count !== "delivered" && d.messages > 0;
    const number = (v) => (v < 100000 ? String(v) : scaled(v));
    const heads = rows.filter((d) => d.count === names[0]);
    return Plot.plot({
      ...base(width), height: labels.length * 54 + 34, marginTop: 26, marginBottom: 6, marginRight: 4,
      x: { type: "band", domain: names, axis: "top", label: null, tickSize: 0, padding: 0.04, tickFormat: (d) => (width < 420 ? { delivered: "deliv.", duplicated: "dupl.", reordered: "reord." }[d] ?? d : d) },
      y: { type: "band", domain: labels, axis: null, padding: 0 },
      marks: [
        Plot.cell(rows, { x: "count", y: "system", insetTop: 26, insetBottom: 4, rx: 3, fill: (d) => (bad(d) ? "var(--bad-bg)" : "var(--panel)"), title: (d) => `${d.system}: ${d.messages} ${d.count} of ${d.expected_deliveries} expected` }),
        Plot.text(rows, { x: "count", y: "system", dy: 11, text: (d) => number(d.messages), fill: (d) => (bad(d) ? "var(--bad)" : "var(--ink)"), fontWeight: (d) => (bad(d) ? 700 : 400), fontVariant: "tabular-nums" }),
        Plot.text(heads, { frameAnchor: "left", y: "system", dy: -16, text: (d) => clip(d.system, Math.floor(width / 7) - 4), fontWeight: 600, fill: "var(--ink)" }),
      ],
    });
  }

  const draw = { throughput, latency, ecdf, series, cpu, counts };

  function render(element) {
    const { figure, workload } = figures.get(element.id);
    const place = element.querySelector(".chart");
    const width = Math.max(280, Math.floor(place.clientWidth));
    if (place.dataset.width === String(width)) return;
    place.dataset.width = width;
    place.replaceChildren();
    if (!figure.rows.length) {
      place.textContent = "Nothing was measured.";
      return;
    }
    const chart = draw[figure.kind](figure, workload, width);
    chart.setAttribute("viewBox", chart.getAttribute("viewBox") ?? `0 0 ${width} ${chart.getAttribute("height")}`);
    chart.setAttribute("aria-hidden", "true");
    place.append(chart);
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
    const top = 34, edge = 12;
    const outer = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    outer.setAttribute("viewBox", `0 0 ${w + 2 * edge} ${h + top + edge}`);
    outer.setAttribute("width", w + 2 * edge);
    outer.setAttribute("height", h + top + edge);
    const add = (name, attributes, text) => {
      const node = document.createElementNS("http://www.w3.org/2000/svg", name);
      for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
      if (text) node.textContent = text;
      outer.append(node);
    };
    const { figure } = figures.get(id);
    const heading = element.closest("section").querySelector("h2").textContent;
    add("title", {}, `${figure.title}, ${heading}`);
    add("desc", {}, figure.description);
    add("rect", { width: "100%", height: "100%", fill: "var(--paper)" });
    add("text", { x: edge + 8, y: 22, "font-family": "var(--sans)", "font-size": 14, "font-weight": 600, fill: "var(--ink)" }, `${figure.title}, ${clip(heading, 60)}`);
    copy.removeAttribute("aria-hidden");
    copy.setAttribute("x", edge);
    copy.setAttribute("y", top);
    copy.setAttribute("width", w);
    copy.setAttribute("height", h);
    outer.append(copy);
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
  document.addEventListener("click", (event) => {
    const kind = event.target.dataset?.save;
    if (!kind) return;
    const id = event.target.closest("figure").id;
    if (kind === "svg") save(`${id}.svg`, "image/svg+xml", svg(id));
    else save(`${id}.csv`, "text/csv", csv(id));
  });

  // ---- start -------------------------------------------------------------------------------
  const all = [...document.querySelectorAll("figure")];
  const renderAll = () => all.forEach(render);
  renderAll();
  let pending = 0;
  addEventListener("resize", () => {
    cancelAnimationFrame(pending);
    pending = requestAnimationFrame(renderAll);
  });
  document.documentElement.dataset.drawn = "yes";
})();
