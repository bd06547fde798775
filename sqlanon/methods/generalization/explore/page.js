"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const byLevels = data.kind === "lattice";
  const candidates = data.candidates;
  const members = data.unit, member = members.replace(/s$/, "");
  const [LEFT, RIGHT, TOP, BOTTOM] = [64, 18, 30, 52];
  const [NARROWEST, WIDEST] = [320, 900];
  let [WIDTH, HEIGHT] = [WIDEST, 460]; // as wide as the page lets it be, so that texts keep their size
  const CELL = 16; // of the grid by which the nearest point is found
  const get = id => document.getElementById(id);

  // --- texts

  const whole = number => number.toLocaleString("en-US");
  const percent = share => share === null ? "\u2013" : share > 0 && share < 0.0001 ? "< 0.01 %" : share >= 0.01
    ? `${(100 * share).toFixed(1).replace(/\.0$/, "")} %` : `${Number((100 * share).toPrecision(2))} %`;
  const utility = one => one.loss === null ? null : 1 - one.loss;
  const quote = text => /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\"'\"'")}'`;
  const levelsText = levels => levels.map((level, place) => `${data.names_in_levels[place]}=${level}`).join(",");
  const nameOf = one => byLevels
    ? data.columns.map((column, place) => `${column.name} ${one.levels[place]}`).join(", ")
    : [one.policy, one.k === null ? null : `k = ${whole(one.k)}`].filter(part => part !== null).join(", ");
  const measuresOf = one => (one.rows === 0 ? "all rows are suppressed"
    : `greatest risk ${percent(one.risk.greatest)}, mean risk ${percent(one.risk.mean)}, utility ${percent(utility(one))}, `
    + `${whole(one.suppressed)} rows suppressed, ${whole(one.classes)} classes, the smallest of ${whole(one.least)} ${members}`)
    + (one.satisfies ? "" : "; does not satisfy the policy");

  // --- elements

  const element = (name, attributes = {}, text = null) => {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (text !== null) made.textContent = text;
    return made;
  };
  const drawn = (parent, name, attributes = {}, text = null) => {
    const made = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (text !== null) made.textContent = text;
    parent.appendChild(made);
    return made;
  };
  const picture = kind => drawn(get("chart"), "svg", { class: kind, "aria-hidden": "true" });

  // --- the picture: points that never move in one layer, what moves above them in another

  const points = picture("points"), over = picture("over");
  const grid = drawn(points, "g");
  const layers = {
    failing: drawn(points, "path", { class: "dots failing" }),
    satisfying: drawn(points, "path", { class: "dots satisfying" }),
    line: drawn(points, "path", { class: "line" }),
    best: drawn(points, "path", { class: "dots best" }),
  };
  const fixedMark = drawn(over, "circle", { class: "mark", r: 7 });
  const hoverMark = drawn(over, "circle", { class: "hover", r: 9 });
  const places = new Map(byLevels ? candidates.map((one, place) => [one.levels.join(), place]) : []);
  const state = { axis: "greatest", limit: 1, only: false, hovered: null, fixed: null, levels: null };
  let shown = [], order = [], cells = new Map();

  const risk = one => one.risk[state.axis];
  const known = candidates.filter(one => one.rows > 0);
  const least = () => Math.max(1e-9, Math.min(...known.map(risk), data.before ? data.before.risk[state.axis] : 1, 0.5));
  const greatest = known.map(one => one.risk.greatest);
  const [lowest, highest] = known.length ? [Math.max(1e-9, Math.min(...greatest)), Math.max(1e-9, ...greatest)] : [1, 1];
  const top = Math.max(0.01, ...known.map(one => utility(one) ?? 0));
  let [low, high] = [0.001, 1];
  const x = one => LEFT + (WIDTH - LEFT - RIGHT) * Math.log(risk(one) / low) / Math.log(high / low);
  const y = one => HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * (utility(one) ?? 0) / top;
  const at = one => `${x(one).toFixed(1)} ${y(one).toFixed(1)}`;
  const dots = list => list.map(place => `M${at(candidates[place])}h0`).join("");
  const isShown = one => one.rows > 0 && one.risk.greatest <= state.limit * (1 + 1e-12) && (one.satisfies || !state.only);

  // round numbers between two, 1, 2 or 5 times a power of ten apart, at most so many
  function evenMarks(from, to, most) {
    const power = 10 ** Math.floor(Math.log10((to - from) / most));
    const step = [1, 2, 5, 10].map(digit => digit * power).find(one => Math.floor((to - from) / one) < most);
    const marks = [];
    for (let n = Math.ceil(from / step - 1e-9); n * step <= to * (1 + 1e-9); n += 1) marks.push(n * step);
    return marks;
  }

  // risks to mark on their scale of ratios: powers of ten and their halves and fifths, or even steps where these are few
  function risksToMark() {
    const most = Math.floor((WIDTH - LEFT - RIGHT) / 70), end = Math.min(high, 1);
    for (const digits of [[1, 2, 5], [1]]) {
      const marks = [];
      for (let power = Math.floor(Math.log10(low)); power <= 0; power += 1) {
        marks.push(...digits.map(digit => digit * 10 ** power).filter(value => value >= low && value <= end));
      }
      if (marks.length >= 3 && marks.length <= most) return marks;
    }
    return evenMarks(low, end, Math.min(most, 6));
  }

  function fit() {
    WIDTH = Math.min(WIDEST, Math.max(NARROWEST, get("chart").clientWidth || WIDEST));
    HEIGHT = Math.round(Math.max(340, 0.51 * WIDTH));
    for (const one of [points, over]) one.setAttribute("viewBox", `0 0 ${WIDTH} ${HEIGHT}`);
    drawAxes();
    draw();
  }

  function drawAxes() {
    low = 0.8 * least();
    high = Math.min(1.25, 1.25 * Math.max(...known.map(risk), low));
    grid.replaceChildren();
    for (const value of risksToMark()) {
      const across = x({ risk: { [state.axis]: value } });
      drawn(grid, "line", { class: "grid", x1: across, x2: across, y1: TOP, y2: HEIGHT - BOTTOM });
      drawn(grid, "text", { x: across, y: HEIGHT - BOTTOM + 20, "text-anchor": "middle" }, percent(value));
    }
    for (const value of evenMarks(0, top, 5)) {
      const up = y({ loss: 1 - value });
      drawn(grid, "line", { class: "grid", x1: LEFT, x2: WIDTH - RIGHT, y1: up, y2: up });
      drawn(grid, "text", { x: LEFT - 8, y: up + 4, "text-anchor": "end" }, percent(value));
    }
    const title = state.axis === "greatest" ? `greatest risk of a ${member}` : `mean risk of the ${members}`;
    drawn(grid, "text", { class: "title", x: WIDTH - RIGHT, y: HEIGHT - 10, "text-anchor": "end" }, `${title} \u2192`);
    drawn(grid, "text", { class: "title", x: 4, y: 14 }, "\u2191 utility");
  }

  function draw() {
    shown = [];
    candidates.forEach((one, place) => { if (isShown(one)) shown.push(place); });
    order = [...shown].sort((a, b) => risk(candidates[a]) - risk(candidates[b])
      || candidates[a].loss - candidates[b].loss || a - b);
    cells = new Map();
    for (const place of shown) {
      const key = `${Math.floor(x(candidates[place]) / CELL)},${Math.floor(y(candidates[place]) / CELL)}`;
      if (cells.has(key)) cells.get(key).push(place); else cells.set(key, [place]);
    }
    const front = frontShown();
    layers.failing.setAttribute("d", dots(shown.filter(place => !candidates[place].satisfies)));
    layers.satisfying.setAttribute("d", dots(shown.filter(place => candidates[place].satisfies)));
    layers.line.setAttribute("d", front.map((place, n) => `${n ? "L" : "M"}${at(candidates[place])}`).join(""));
    layers.best.setAttribute("d", dots(front));
    mark(fixedMark, state.fixed);
    hover(state.hovered !== null && isShown(candidates[state.hovered]) ? state.hovered : null);
  }

  const frontShown = () => (state.axis === "greatest" ? data.front : data.front_by_mean)
    .filter(place => isShown(candidates[place]));

  function mark(circle, place) {
    const seen = place !== null && isShown(candidates[place]);
    circle.setAttribute("visibility", seen ? "visible" : "hidden");
    if (!seen) return;
    circle.dataset.place = place;
    circle.setAttribute("cx", x(candidates[place]));
    circle.setAttribute("cy", y(candidates[place]));
  }

  function hover(place) {
    state.hovered = place;
    mark(hoverMark, place);
    get("hovered").textContent = place === null
      ? `${whole(shown.length)} of ${whole(candidates.length)} candidates are shown. Point at one, or go to it with the arrow keys.`
      : `${nameOf(candidates[place])}: ${measuresOf(candidates[place])}`;
  }

  function nearest(event) {
    const box = points.getBoundingClientRect();
    const across = (event.clientX - box.left) * WIDTH / box.width, up = (event.clientY - box.top) * HEIGHT / box.height;
    const [column, row] = [Math.floor(across / CELL), Math.floor(up / CELL)];
    let best = null, distance = (1.5 * CELL) ** 2;
    for (let i = column - 1; i <= column + 1; i += 1) {
      for (let j = row - 1; j <= row + 1; j += 1) {
        for (const place of cells.get(`${i},${j}`) ?? []) {
          const away = (x(candidates[place]) - across) ** 2 + (y(candidates[place]) - up) ** 2;
          if (away < distance) [best, distance] = [place, away];
        }
      }
    }
    return best;
  }

  // --- the fixed candidate

  function fix(place) {
    state.fixed = place;
    if (place !== null) state.levels = candidates[place].levels;
    mark(fixedMark, place);
    describe(place === null ? null : candidates[place]);
  }

  function command() {
    if (byLevels) return `${data.command} --levels ${quote(levelsText(state.levels))}`;
    const fixed = state.fixed === null ? null : candidates[state.fixed].policy;
    return Object.hasOwn(data.commands, fixed) ? data.commands[fixed] : data.command;
  }

  function describe(one) {
    get("command").textContent = command();
    get("copied").textContent = "";
    get("fixed-text").textContent = one === null
      ? "This combination of levels was not measured; --candidates measures more."
      : `${nameOf(one)}: ${measuresOf(one)}.` + (one.k === null ? "" : ` Write k: ${one.k} into the policy, then:`);
    fillColumns(one);
    fillRisks(one);
    fillSizes(one);
  }

  function row(table, heading, cells) {
    const made = element("tr");
    made.appendChild(element("th", { scope: "row", class: "name" }, heading));
    for (const cell of cells) made.appendChild(cell);
    table.appendChild(made);
  }
  const body = id => get(id).tBodies[0];
  const number = text => element("td", { class: "number" }, text);

  function fillColumns(one) {
    if (body("columns").rows.length === 0) makeColumns();
    data.columns.forEach((column, place) => {
      const made = body("columns").rows[place];
      if (byLevels) {
        made.querySelector("input").value = state.levels[place];
        made.querySelector("output").textContent = state.levels[place];
        made.cells[2].textContent = column.levels[state.levels[place] - column.lowest];
      }
      const lost = one === null ? null : one.losses[place];
      made.querySelector(".lost").textContent = percent(lost);
      made.querySelector(".kept").style.width = `${100 * (lost ?? 0)}%`;
    });
  }

  function makeColumns() {
    data.columns.forEach((column, place) => {
      const cells = [];
      if (byLevels) {
        const most = column.lowest + column.levels.length - 1;
        const input = element("input", {
          type: "range", min: column.lowest, max: most, step: 1, "aria-label": `Level of ${column.name}`,
        });
        input.addEventListener("input", () => {
          state.levels = state.levels.map((level, other) => other === place ? Number(input.value) : level);
          fix(places.get(state.levels.join()) ?? null);
        });
        const cell = element("td");
        cell.append(input, " ", element("output"));
        cells.push(cell, element("td"));
      }
      const lost = element("td", { class: "number" });
      const bar = element("span", { class: "bar", "aria-hidden": "true" });
      bar.appendChild(element("span", { class: "kept" }));
      lost.append(element("span", { class: "lost" }), bar);
      row(body("columns"), column.name, [...cells, lost]);
    });
  }

  function fillRisks(one) {
    const before = data.before, table = body("risks");
    table.replaceChildren();
    const both = (heading, value) => row(table, heading,
      [before, one].map(side => number(side === null ? "\u2013" : value(side))));
    both(`Greatest risk of a ${member}`, side => percent(side.risk.greatest));
    both(`Mean risk of the ${members}`, side => percent(side.risk.mean));
    both(`${members === "rows" ? "Rows" : "Persons"} in the smallest class`, side => whole(side.least));
    both("Classes", side => whole(side.classes));
    both("Rows shown", side => whole(side.rows));
    both("Rows suppressed", side => whole(side.suppressed));
  }

  function fillSizes(one) {
    const table = body("sizes"), sizes = one === null ? [] : one.sizes;
    const most = Math.max(1, ...sizes.map(([, , kept, gone]) => kept + gone));
    table.replaceChildren();
    for (const [lower, upper, kept, gone] of sizes) {
      const bar = element("span", { class: "bar", "aria-hidden": "true" });
      for (const [kind, count] of [["kept", kept], ["gone", gone]]) {
        const part = element("span", { class: kind });
        part.style.width = `${100 * count / most}%`;
        bar.appendChild(part);
      }
      const cell = element("td");
      cell.appendChild(bar);
      const label = lower === upper ? whole(lower) : `${whole(lower)}\u2013${whole(upper)}`;
      row(table, label, [number(whole(kept)), number(whole(gone)), cell]);
    }
  }

  // --- what people do

  const chart = get("chart");
  let waiting = null;
  chart.addEventListener("pointermove", event => {
    if (waiting === null) requestAnimationFrame(() => { hover(nearest(waiting)); waiting = null; });
    waiting = event;
  });
  chart.addEventListener("click", event => {
    const place = nearest(event);
    if (place !== null) { hover(place); fix(place); }
  });
  const steps = { ArrowRight: 1, ArrowLeft: -1, ArrowUp: 1, ArrowDown: -1 };
  chart.addEventListener("keydown", event => {
    const list = event.key === "ArrowUp" || event.key === "ArrowDown" ? frontShown() : order;
    if (event.key in steps && list.length) {
      const from = list.indexOf(state.hovered ?? state.fixed), step = steps[event.key];
      hover(list[from < 0 ? (step > 0 ? 0 : list.length - 1) : Math.min(list.length - 1, Math.max(0, from + step))]);
    } else if ((event.key === "Home" || event.key === "End") && order.length) {
      hover(order[event.key === "Home" ? 0 : order.length - 1]);
    } else if ((event.key === "Enter" || event.key === " ") && state.hovered !== null) {
      fix(state.hovered);
    } else {
      return;
    }
    event.preventDefault();
  });
  get("axis").addEventListener("change", event => { state.axis = event.target.value; drawAxes(); draw(); });
  get("satisfying").addEventListener("change", event => { state.only = event.target.checked; draw(); });
  get("limit").addEventListener("input", event => {
    state.limit = highest * (lowest / highest) ** (1 - event.target.value / 1000);
    get("limit-text").textContent = percent(state.limit);
    draw();
  });
  get("front-table").addEventListener("click", event => {
    const button = event.target.closest("button");
    if (button) { fix(Number(button.dataset.place)); get("fixed").scrollIntoView(); }
  });
  get("copy").addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(get("command").textContent);
      get("copied").textContent = "Copied.";
    } catch {
      getSelection().selectAllChildren(get("command"));
      get("copied").textContent = document.execCommand("copy") ? "Copied." : "Selected: copy it with the keyboard.";
    }
  });

  // half of those that satisfy the policy, or more, have one greatest risk, such as 1/k: the mean tells them apart
  function pilesUp() {
    const counts = new Map();
    const satisfying = known.filter(one => one.satisfies);
    for (const one of satisfying) counts.set(one.risk.greatest, (counts.get(one.risk.greatest) ?? 0) + 1);
    return satisfying.length > 1 && 2 * Math.max(...counts.values()) >= satisfying.length;
  }

  state.axis = pilesUp() ? "mean" : "greatest";
  state.limit = highest;
  get("axis").value = state.axis;
  get("limit").value = "1000";
  get("limit").disabled = lowest === highest;
  get("satisfying").checked = false;
  get("limit-text").textContent = percent(highest);
  addEventListener("resize", fit);
  fit();
  if (candidates.length) fix(data.best ?? data.front[0] ?? 0);
})();
