// Pictures are cut from sprite sheets. A sheet is decoded when first needed, a picture drawn when near the window.
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

async function drawTile(canvas, sheet, position) {
  const wanted = `${sheet} ${position}`;
  canvas.dataset.wanted = wanted;
  const image = await sheetImage(sheet);
  if (canvas.dataset.wanted !== wanted) return; // the canvas is to show another picture by now
  const columns = Number(sheetTexts[sheet].dataset.columns), { width, height } = canvas;
  const left = (position % columns) * width, top = Math.floor(position / columns) * height;
  canvas.getContext("2d").drawImage(image, left, top, width, height, 0, 0, width, height);
  canvas.dataset.drawn = wanted;
}

const nearby = new IntersectionObserver((entries) => {
  for (const entry of entries) if (entry.isIntersecting) drawNow(entry.target);
}, { rootMargin: "400px" });

// Pictures outside the window are drawn when the browser is idle, so that the page can be printed.
const whenIdle = window.requestIdleCallback ?? ((work) => setTimeout(work, 50));
function drawRest() {
  for (const canvas of [...waiting.keys()].slice(0, 50)) drawNow(canvas);
  if (waiting.size) whenIdle(drawRest);
}

function drawNow(canvas) {
  nearby.unobserve(canvas);
  const picture = waiting.get(canvas);
  waiting.delete(canvas);
  if (picture) drawTile(canvas, ...picture);
}

function element(tag, properties = {}, ...children) {
  const created = Object.assign(document.createElement(tag), properties);
  created.append(...children.filter((child) => child !== null));
  return created;
}

function tile(size, sheet, position, label) {
  const canvas = element("canvas", { width: size.width, height: size.height, className: "tile" });
  canvas.setAttribute("role", "img");
  canvas.setAttribute("aria-label", label);
  if (sheet !== null && sheet !== undefined) {
    waiting.set(canvas, [sheet, position]);
    nearby.observe(canvas);
  }
  return canvas;
}
