// The gallery: cards of one image under one mask, filtered and sorted.
const CARDS = matchMedia("(max-width: 760px)").matches ? 12 : 24; // to show at once
const LENIENT = 1e-3; // the end of the slider
const gallery = data.gallery;
let items = [], chosen = [], shown = 0;

// An item is one image under one mask: its number in the set, its position in the sheets, the cells of all methods.
function galleryItems() {
  return gallery.sets.flatMap((set) => gallery.masks.flatMap((mask) => {
    const cells = set.cells.filter((cell) => cell.mask === mask);
    if (!cells.length) return [];
    return set.index.map((image, position) => ({ set, mask, cells, image, position }));
  }));
}

const errorOf = (item, cell) => errors[data.pools[cell.pool][0]][item.image];

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

const cellsShown = (item, filters) =>
  item.cells.filter((cell) => filters.method === null || cell.method === filters.method);
const bestError = (item, filters) => Math.min(...cellsShown(item, filters).map((cell) => errorOf(item, cell)));

function isChosen(item, filters) {
  if (filters.set && item.set.name !== filters.set) return false;
  if (filters.mask !== null && item.mask !== filters.mask) return false;
  if (!cellsShown(item, filters).length) return false;
  if (!filters.recovered) return true;
  return (bestError(item, filters) < threshold) === (filters.recovered === "yes");
}

function chooseItems() {
  const filters = galleryFilters();
  chosen = items.filter((item) => isChosen(item, filters));
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
  const cards = chosen.slice(shown, shown + CARDS).map((item) => card(item, filters));
  byId("cards").append(...cards);
  shown += cards.length;
  byId("more").hidden = shown >= chosen.length;
  byId("more").textContent = `Show ${Math.min(CARDS, chosen.length - shown)} more`;
  byId("shown").textContent = `${shown} of ${chosen.length} picture rows`;
  if (!chosen.length) byId("shown").textContent = "No image matches at this threshold.";
  markRecovered();
  whenIdle(drawRest);
  if (first && cards.length) cards[0].focus({ preventScroll: true });
}

function card(item, filters) {
  const { set, mask, position } = item, id = set.ids[position];
  const description = `${set.label} image ${id}, mask ${mask}`;
  const input = column("original", tile(gallery, set.original, position, `original, ${description}`),
    tile(gallery, set.degraded[mask], position, `damaged, ${description}`), element("span", { textContent: "damaged" }));
  const title = element("h3", {}, element("span", { className: "badge", textContent: set.label }),
    element("span", { className: "name", textContent: id, title: id }), element("span", { className: "mask", textContent: mask }));
  const methods = cellsShown(item, filters).flatMap((cell) => methodColumns(item, cell, description));
  const article = element("article", { className: "card", tabIndex: -1 }, title,
    element("div", { className: "columns" }, input, ...methods));
  article.classList.toggle("control", set.name !== "train");
  article.setAttribute("aria-label", description);
  return article;
}

function column(heading, ...parts) {
  return element("figure", {}, element("figcaption", { textContent: heading }), ...parts);
}

function methodColumns(item, cell, description) {
  const error = errorOf(item, cell), { position } = item;
  const outcome = element("span", { className: "outcome" }, element("b", { textContent: shortForm(error) }));
  outcome.dataset.error = error;
  const recovery = column(cell.method, tile(gallery, cell.estimate, position, `recovered by ${cell.method}, ${description}`),
    tile(gallery, cell.error, position, `error of ${cell.method}, ${description}`),
    element("span", { textContent: "where it differs" }), outcome);
  recovery.className = `method colour-${data.colours[cell.method]}`;
  recovery.title = howItStopped(cell, position);
  return [recovery, maskColumn(item, cell, description), endColumn(item, cell, description)].filter((part) => part !== null);
}

function maskColumn({ position }, cell, description) {
  if (cell.estimated_mask === null) return null;
  const mask = tile(gallery, cell.estimated_mask, position, `mask estimated by ${cell.method}, ${description}`);
  return column("its mask", mask, maskAgreement(cell, position));
}

// The training image that a recovery of another picture ended on; it is shown while the threshold says so.
function endColumn(item, cell, description) {
  const { position, set } = item;
  if (!cell.nearest || cell.nearest[position] === null) return null;
  const name = cell.nearest[position], own = set.name === "train" && name === set.ids[position];
  if (own || cell.nearest_mse[position] >= LENIENT) return null;
  const shown = gallery.returned?.index.indexOf(cell.nearest_index[position]) ?? -1;
  const picture = shown < 0 ? null : tile(gallery, gallery.returned.sheet, shown, `training ${gallery.noun} ${name}, on which ${description} ended`);
  const end = column(`${cell.method} ended on training ${gallery.noun} ${name}`, picture);
  end.className = "ended";
  end.dataset.error = errorOf(item, cell);
  end.dataset.nearest = cell.nearest_mse[position];
  return end;
}

function howItStopped(cell, position) {
  if (!cell.stop) return "";
  if (!cell.rounds) return cell.stop[position];
  return `${cell.stop[position]}, ${cell.rounds[position]} rounds`;
}

function maskAgreement(cell, position) {
  return element("span", { className: "agreement" },
    element("span", { textContent: "IoU", title: "overlap of the erased pixels in the estimated and in the true mask" }),
    element("b", { textContent: cell.iou[position].toFixed(2) }),
    element("span", { textContent: "right", title: "share of correct mask values" }),
    element("b", { textContent: shareText(cell.accuracy[position]) }));
}

function shareText(share) {
  if (share === 1) return "100%"; // there is no room for 100.0%
  return `${oneDecimal(100 * share)}%`;
}

// Marks follow the threshold at once, the choice of cards when the slider rests.
function markRecovered() {
  for (const outcome of document.querySelectorAll(".outcome")) {
    const recovered = Number(outcome.dataset.error) < threshold;
    outcome.classList.toggle("yes", recovered);
    outcome.title = recovered ? "recovered at this threshold" : "not recovered at this threshold";
  }
  for (const end of document.querySelectorAll(".ended"))
    end.hidden = Number(end.dataset.error) < threshold || Number(end.dataset.nearest) >= threshold;
}

let resting = 0;
function updateGallery() {
  markRecovered();
  if (!byId("filter-recovered").value) return;
  clearTimeout(resting);
  resting = setTimeout(chooseItems, 150);
}

// Enlarge by a whole factor, so that all pixels are equally large. Two cards fit side by side, or at least one,
// unless pictures would become too small to see.
function setZoom() {
  const zoom = Number(byId("zoom").value), { width, height } = gallery, cards = byId("cards");
  const [gap, frame] = ["--gap", "--frame"].map((name) => parseFloat(getComputedStyle(cards).getPropertyValue(name)));
  const cells = items.length ? cellsShown(items[0], galleryFilters()) : [];
  const columns = 1 + cells.length + cells.filter((cell) => cell.estimated_mask !== null).length;
  const factorIn = (room) => Math.floor(((room - frame - gap * (columns - 1)) / columns) / width);
  const wanted = Math.max(1, Math.round(96 * zoom / width)), least = Math.max(1, Math.ceil(48 / width));
  const fitting = [(cards.clientWidth - 14) / 2, cards.clientWidth].map(factorIn).find((factor) => factor >= least);
  const factor = zoom > 1 ? wanted : Math.min(wanted, fitting ?? least);
  const card = columns * (factor * width + gap) - gap + frame;
  cards.style.setProperty("--tile", `${factor * width}px`);
  cards.style.setProperty("--shape", `${width} / ${height}`);
  cards.style.setProperty("--card", `${Math.min(cards.clientWidth, card)}px`);
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
  onThreshold(updateGallery);
  addEventListener("resize", setZoom);
}
