// Round by round: one scrubber for all methods. Round 0 is the damaged image.
const rounds = data.rounds;
let panels = [], playing = 0;

function panel(strip, image) {
  const estimate = tile(rounds, null, 0, `estimate of ${strip.method}`);
  const mask = strip.mask === null ? null : tile(rounds, null, 0, `mask estimate of ${strip.method}`);
  const status = element("span");
  const figure = element("figure", { className: `method colour-${data.colours[strip.method]}` },
    element("figcaption", { textContent: strip.method }), element("div", { className: "pair" }, estimate, mask), status);
  return { strip, image, estimate, mask, status, figure };
}

function showRound() {
  const round = Number(byId("round").value);
  byId("round-number").textContent = round;
  for (const panel of panels) showPanel(panel, round);
}

function showPanel({ strip, image, estimate, mask, status }, round) {
  const frame = strip.rounds.findLastIndex((kept) => kept <= round);
  status.textContent = statusText(round, strip);
  mask?.classList.toggle("unknown", round === 0);
  if (round === 0) {
    drawTile(estimate, image.degraded, 0);
    return;
  }
  drawTile(estimate, strip.estimate, frame);
  if (mask) drawTile(mask, strip.mask, frame);
}

// The audit may have saved only the first rounds of many.
function statusText(round, strip) {
  if (round === 0) return "start";
  if (round < strip.last) return `round ${round} of ${strip.total}`;
  if (strip.total > strip.last) return `round ${strip.last} of ${strip.total}, the last one saved`;
  return `stopped after round ${strip.last}`;
}

function showImage() {
  const image = rounds.images[byId("watch-image").value];
  panels = image.strips.map((strip) => panel(strip, image));
  const original = column("original", tile(rounds, image.original, 0, "original image"));
  const damaged = column("damaged", tile(rounds, image.degraded, 0, "damaged image"));
  byId("stage").replaceChildren(original, damaged, ...panels.map((panel) => panel.figure));
  byId("round").max = Math.max(1, ...image.strips.map((strip) => strip.last));
  byId("round").value = byId("round").max;
  showRound();
}

function stopPlaying() {
  clearInterval(playing);
  playing = 0;
  byId("play").textContent = "Play";
  byId("play").setAttribute("aria-pressed", "false");
}

function playOrStop() {
  if (playing) return stopPlaying();
  const scrubber = byId("round");
  if (scrubber.value === scrubber.max) scrubber.value = 0;
  showRound();
  const pause = Math.min(400, Math.max(40, 6000 / scrubber.max));
  byId("play").textContent = "Stop";
  byId("play").setAttribute("aria-pressed", "true");
  playing = setInterval(() => {
    scrubber.value = Number(scrubber.value) + 1;
    showRound();
    if (scrubber.value === scrubber.max) stopPlaying();
  }, pause);
}

function startRounds() {
  if (!rounds) return;
  byId("stage").style.setProperty("--tile", `${Math.max(1, Math.round(160 / rounds.width)) * rounds.width}px`);
  byId("stage").style.setProperty("--shape", `${rounds.width} / ${rounds.height}`);
  byId("watch-image").addEventListener("change", () => { stopPlaying(); showImage(); });
  byId("round").addEventListener("input", () => { stopPlaying(); showRound(); });
  byId("play").addEventListener("click", playOrStop);
  showImage();
}
