// The threshold, and the rates that follow it. Counts and intervals are those of recollect.scoring.
const data = JSON.parse(document.getElementById("data").textContent);
const byId = (id) => document.getElementById(id);

// Unpack doubles, one an image. An error that is not a number belongs to an estimate that is not finite.
function unpack(text) {
  const bytes = atob(text), view = new DataView(new ArrayBuffer(bytes.length));
  for (let i = 0; i < bytes.length; i++) view.setUint8(i, bytes.charCodeAt(i));
  return Float64Array.from({ length: bytes.length / 8 }, (_, i) => {
    const error = view.getFloat64(8 * i, true);
    return Number.isNaN(error) ? Infinity : error;
  });
}

const errors = data.errors.map(unpack);
// The smallest error of each image over the records of a pool; sorted, so that counting is a binary search.
const pools = data.pools.map((records) =>
  Float64Array.from(errors[records[0]], (_, i) => Math.min(...records.map((record) => errors[record][i]))).sort());

let threshold = data.openingThreshold;
const listeners = [];
const onThreshold = (listener) => { listeners.push(listener); listener(); };

function countBelow(sorted, limit) {
  let low = 0, high = sorted.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle] < limit) low = middle + 1; else high = middle;
  }
  return low;
}

function wilson(count, total, z = 1.959963984540054) {
  const share = count / total;
  const centre = share + z * z / (2 * total);
  const spread = z * Math.sqrt(share * (1 - share) / total + z * z / (4 * total * total));
  const scale = 1 + z * z / total;
  return [count === 0 ? 0 : (centre - spread) / scale, count === total ? 1 : (centre + spread) / scale];
}

function rateOf(pool) {
  const total = pools[pool].length, count = countBelow(pools[pool], threshold);
  const [low, high] = wilson(count, total);
  return { count, total, value: count / total, low, high };
}

// One decimal; ties go to the even digit as in Python. A tie at one decimal is an odd number of quarters.
function oneDecimal(x) {
  if (Math.abs(x * 4) % 2 !== 1) return x.toFixed(1);
  const below = Math.floor(x * 10);
  const even = below + (below % 2);
  return (even / 10).toFixed(1);
}

const SUPERSCRIPT = "⁰¹²³⁴⁵⁶⁷⁸⁹";
function scientific(value) {
  if (!Number.isFinite(value)) return "–";
  if (value === 0) return "0";
  const [digits, power] = value.toExponential(1).split("e");
  const sign = power.startsWith("-") ? "⁻" : "";
  return `${digits}\u202f×\u202f10${sign}${[...power.slice(1)].map((digit) => SUPERSCRIPT[digit]).join("")}`;
}

const TEXT_OF_RATE = {
  count: (rate) => String(rate.count),
  percent: (rate) => `${oneDecimal(100 * rate.value)}%`,
  interval: (rate) => `${oneDecimal(100 * rate.low)}–${oneDecimal(100 * rate.high)}`,
};

const decibels = (mse) => -10 * Math.log10(mse);

function updateRates() {
  const rates = pools.map((_, i) => rateOf(i));
  for (const part of document.querySelectorAll("[data-pool]")) {
    const rate = rates[part.dataset.pool];
    for (const name of ["value", "low", "high"]) part.style.setProperty(`--${name}`, rate[name]);
    for (const shown of part.querySelectorAll("[data-show]")) shown.textContent = TEXT_OF_RATE[shown.dataset.show](rate);
  }
}

function moveThresholdLines() {
  for (const line of document.querySelectorAll(".threshold-line")) {
    const { low, high, left, right } = line.dataset;
    const share = Math.min(1, Math.max(0, (decibels(threshold) - low) / (high - low)));
    line.setAttribute("transform", `translate(${Number(left) + share * (right - left)} 0)`);
  }
}

function showThreshold() {
  byId("threshold-bar").dataset.threshold = threshold;
  if (document.activeElement !== byId("threshold")) byId("threshold").value = shortForm(threshold);
  byId("decibels").textContent = decibels(threshold).toFixed(1);
  byId("levels").textContent = (255 * Math.sqrt(threshold)).toFixed(2);
  byId("slider").value = decibels(threshold);
  byId("slider").setAttribute("aria-valuetext", `${scientific(threshold)}, ${decibels(threshold).toFixed(1)} dB`);
  for (const shown of document.querySelectorAll(".threshold-now")) shown.textContent = shortForm(threshold);
  for (const button of document.querySelectorAll("[data-preset]"))
    button.setAttribute("aria-pressed", Number(button.dataset.preset) === threshold);
}

function shortForm(value) {
  if (!Number.isFinite(value)) return "–";
  return value === 0 ? "0" : value.toExponential(1).replace(".0e", "e");
}

function setThreshold(value) {
  threshold = value;
  for (const listener of listeners) listener();
}

function fromSlider() {
  const chosen = Number(byId("slider").value);
  const mark = data.marks.find((mark) => Math.abs(decibels(mark) - chosen) < 0.06); // snap to the paper's thresholds
  setThreshold(mark ?? 10 ** (-chosen / 10));
}

function fromText() {
  const value = Number(byId("threshold").value);
  const valid = value >= 1e-12 && value <= 1;
  byId("threshold").setAttribute("aria-invalid", !valid);
  if (valid) setThreshold(value);
}
