// Pictures: cut from sprite sheets, which are decoded when first needed and drawn when they come near the window.
const sheetTexts = [...document.querySelectorAll("script.sheet")];
const sheetImages = new Map();
const waiting = new Map();

function sheetImage(number) {
  if (!sheetImages.has(number)) {
    const image = new Image();
    image.src = `data:image/png;base64,${sheetTexts[number].textContent}`;
    sheetImages.set(number, image.decode().then(() => image));
  }
  return sheetImages.get(number);
}

async function drawTile(canvas, sheet, place) {
  const wanted = `${sheet} ${place}`;
  canvas.dataset.wanted = wanted;
  const image = await sheetImage(sheet);
  if (canvas.dataset.wanted !== wanted) return; // another picture was asked for meanwhile
  const columns = Number(sheetTexts[sheet].dataset.columns), { width, height } = canvas;
  const left = (place % columns) * width, top = Math.floor(place / columns) * height;
  canvas.getContext("2d").drawImage(image, left, top, width, height, 0, 0, width, height);
  canvas.dataset.drawn = wanted;
}

const nearby = new IntersectionObserver((entries) => {
  for (const entry of entries) if (entry.isIntersecting) drawNow(entry.target);
}, { rootMargin: "400px" });

// What is not near the window waits until nothing else is to be done; it is then there when the page is printed.
const whenIdle = window.requestIdleCallback ?? ((work) => setTimeout(work, 50));
function drawRest() {
  for (const canvas of [...waiting.keys()].slice(0, 50)) drawNow(canvas);
  if (waiting.size) whenIdle(drawRest);
}

function drawNow(canvas) {
  nearby.unobserve(canvas);
  const place = waiting.get(canvas);
  waiting.delete(canvas);
  if (place) drawTile(canvas, ...place);
}

function element(tag, properties = {}, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children.filter((child) => child !== null));
  return made;
}

function tile(size, sheet, place, label) {
  const canvas = element("canvas", { width: size.width, height: size.height, className: "tile" });
  canvas.setAttribute("role", "img");
  canvas.setAttribute("aria-label", label);
  if (sheet !== null && sheet !== undefined) {
    waiting.set(canvas, [sheet, place]);
    nearby.observe(canvas);
  }
  return canvas;
}

const PAGE = matchMedia("(max-width: 760px)").matches ? 12 : 24; // cards shown at once
const gallery = data.gallery;
let items = [], chosen = [], shown = 0;

// One item is one image under one mask, with the outcome of every method.
function galleryItems() {
  return gallery.sets.flatMap((set) => gallery.masks.flatMap((mask) => {
    const cells = set.cells.filter((cell) => cell.mask === mask);
    return cells.length ? set.index.map((position, place) => ({ set, mask, cells, position, place })) : [];
  }));
}

const errorOf = (item, cell) => errors[data.pools[cell.pool][0]][item.position];

function galleryFilters() {
  const mask = byId("filter-mask").value, method = byId("filter-method").value;
  return {
    set: byId("filter-set").value,
    mask: mask === "" ? null : gallery.masks[mask],
    method: method === "" ? null : gallery.methods[method],
    recovered: byId("filter-recovered").value,
    sort: byId("sort").value,
  };
}

const cellsShown = (item, filters) => item.cells.filter((c) => filters.method === null || c.method === filters.method);
const bestError = (item, filters) => Math.min(...cellsShown(item, filters).map((cell) => errorOf(item, cell)));

function chooseItems() {
  const filters = galleryFilters();
  chosen = items.filter((item) => (!filters.set || item.set.name === filters.set)
    && (filters.mask === null || item.mask === filters.mask) && cellsShown(item, filters).length
    && (!filters.recovered || (bestError(item, filters) < threshold) === (filters.recovered === "yes")));
  const direction = { up: 1, down: -1 }[filters.sort];
  if (direction) chosen.sort((a, b) => direction * (bestError(a, filters) - bestError(b, filters)) || 0);
  for (const canvas of byId("cards").querySelectorAll("canvas")) {
    nearby.unobserve(canvas);
    waiting.delete(canvas);
  }
  byId("cards").replaceChildren();
  shown = 0;
  showMore();
}

function showMore() {
  const filters = galleryFilters(), first = shown;
  const cards = chosen.slice(shown, shown + PAGE).map((item) => card(item, filters));
  byId("cards").append(...cards);
  shown += cards.length;
  byId("more").hidden = shown >= chosen.length;
  byId("more").textContent = `Show ${Math.min(PAGE, chosen.length - shown)} more`;
  const images = chosen.length === 1 ? "picture row" : "picture rows";
  byId("shown").textContent = chosen.length ? `${shown} of ${chosen.length} ${images}` : "No image is like this at this threshold.";
  markRecovered();
  whenIdle(drawRest);
  if (first && cards.length) cards[0].focus({ preventScroll: true });
}

function card(item, filters) {
  const id = item.set.ids[item.place];
  const told = `${item.set.name} image ${id}, mask ${item.mask}`;
  const given = column("original", tile(gallery, item.set.original, item.place, `original, ${told}`),
    tile(gallery, item.set.degraded[item.mask], item.place, `degraded, ${told}`), element("span", { textContent: "degraded" }));
  const title = element("h3", {}, element("span", { className: "badge", textContent: item.set.name }),
    element("span", { className: "name", textContent: id, title: id }), element("span", { className: "mask", textContent: item.mask }));
  const methods = cellsShown(item, filters).flatMap((cell) => methodColumns(item, cell, told));
  const made = element("article", { className: `card ${item.set.name === "train" ? "" : "control"}`, tabIndex: -1 }, title,
    element("div", { className: "columns" }, given, ...methods));
  made.setAttribute("aria-label", told);
  return made;
}

function column(heading, ...parts) {
  return element("figure", {}, element("figcaption", { textContent: heading }), ...parts);
}

function shareWords(share) {
  if (share === null || share === undefined) return "–";
  return share === 1 ? "100%" : `${oneDecimal(100 * share)}%`;
}

function methodColumns(item, cell, told) {
  const error = errorOf(item, cell), place = item.place;
  const outcome = element("span", { className: "outcome" }, element("b", { textContent: shortForm(error) }));
  outcome.dataset.error = error;
  const stopped = cell.stop ? `${cell.stop[place]}${cell.rounds ? `, ${cell.rounds[place]} rounds` : ""}` : "";
  const main = column(cell.method, tile(gallery, cell.estimate, place, `recovered by ${cell.method}, ${told}`),
    tile(gallery, cell.error, place, `error of ${cell.method}, ${told}`), outcome);
  main.className = `method slot-${data.slots[cell.method]}`;
  main.title = stopped;
  if (cell.found === null) return [main];
  const agreement = cell.iou ? element("span", { className: "agreement" },
    element("span", { textContent: "IoU", title: "overlap of the erased pixels it found with the true ones" }), element("b", { textContent: cell.iou[place] === null ? "–" : cell.iou[place].toFixed(2) }),
    element("span", { textContent: "right", title: "share of values it told right" }),
    element("b", { textContent: shareWords(cell.accuracy?.[place]) })) : null;
  return [main, column("its mask", tile(gallery, cell.found, place, `mask found by ${cell.method}, ${told}`), agreement)];
}

// Marks follow the threshold at once; the choice of cards follows when the hand rests.
function markRecovered() {
  for (const outcome of document.querySelectorAll(".outcome")) {
    const recovered = Number(outcome.dataset.error) < threshold;
    outcome.classList.toggle("yes", recovered);
    outcome.title = recovered ? "recovered at this threshold" : "not recovered at this threshold";
  }
}

let resting = 0;
function galleryFollows() {
  markRecovered();
  if (!byId("filter-recovered").value) return;
  clearTimeout(resting);
  resting = setTimeout(chooseItems, 150);
}

// Whole multiples of a pixel, so that every pixel is as large as its neighbour; of a size that lets two cards stand
// side by side, or at least one fit, as long as the pictures do not become too small to see.
function setZoom() {
  const zoom = Number(byId("zoom").value), { width, height } = gallery, cards = byId("cards");
  const [gap, frame] = ["--gap", "--frame"].map((name) => parseFloat(getComputedStyle(cards).getPropertyValue(name)));
  const cells = items.length ? cellsShown(items[0], galleryFilters()) : [];
  const columns = 1 + cells.length + cells.filter((cell) => cell.found !== null).length;
  const factorIn = (room) => Math.floor(((room - frame - gap * (columns - 1)) / columns) / width);
  const wanted = Math.max(1, Math.round(96 * zoom / width)), least = Math.max(1, Math.ceil(48 / width));
  const fitting = [(cards.clientWidth - 14) / 2, cards.clientWidth].map(factorIn).find((factor) => factor >= least);
  const factor = zoom > 1 ? wanted : Math.min(wanted, fitting ?? least);
  const card = columns * (factor * width + gap) - gap + frame;
  cards.style.setProperty("--tile", `${factor * width}px`);
  cards.style.setProperty("--shape", `${width} / ${height}`);
  cards.style.setProperty("--card", `${Math.min(cards.clientWidth, card)}px`);
  cards.style.setProperty("--spread", cards.clientWidth > 1.9 * card ? "space-between" : "start");
}

function startGallery() {
  if (!gallery) return;
  items = galleryItems();
  byId("filter-method").addEventListener("change", setZoom);
  for (const id of ["filter-set", "filter-mask", "filter-method", "filter-recovered", "sort"])
    byId(id).addEventListener("change", chooseItems);
  byId("zoom").addEventListener("change", setZoom);
  byId("more").addEventListener("click", showMore);
  setZoom();
  chooseItems();
  onThreshold(galleryFollows);
  addEventListener("resize", setZoom);
}
