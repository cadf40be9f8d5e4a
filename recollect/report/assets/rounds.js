// Round by round: one scrubber for all methods. It steps through the rounds that are kept; round 0 is the damaged image.
const rounds = data.rounds;
let panels = [], steps = [0], playing = 0;

function panel(strip, image) {
  const estimate = tile(rounds, null, 0, `estimate of ${strip.method}`);
  const mask = strip.mask === null ? null : tile(rounds, null, 0, `mask estimate of ${strip.method}`);
  const status = element("span"), error = element("span", { className: "error" });
  const figure = element("figure", { className: `method colour-${data.colours[strip.method]}` },
    element("figcaption", { textContent: strip.method }), element("div", { className: "pair" }, estimate, mask), error, status);
  return { strip, image, estimate, mask, error, status, figure };
}

function showRound() {
  const round = steps[byId("round").value];
  byId("round-number").textContent = round;
  byId("round").setAttribute("aria-valuetext", `round ${round}`);
  for (const panel of panels) showPanel(panel, round);
}

function showPanel({ strip, image, estimate, mask, error, status }, round) {
  const frame = strip.rounds.findLastIndex((kept) => kept <= round);
  status.textContent = statusText(round, strip);
  error.textContent = frame < 0 ? "damaged image" : `error ${shortForm(strip.errors[frame])}`;
  mask?.classList.toggle("unknown", frame < 0);
  if (frame < 0) {
    drawTile(estimate, image.degraded, 0);
    return;
  }
  drawTile(estimate, strip.estimate, frame);
  if (mask) drawTile(mask, strip.mask, frame);
}

function statusText(round, strip) {
  const last = strip.rounds.at(-1);
  if (round < last) return `round ${round} of ${last}`;
  return strip.stop ? `ended at round ${last}: ${strip.stop}` : `ended at round ${last}`;
}

function showImage() {
  const image = rounds.images[byId("watch-image").value];
  panels = image.strips.map((strip) => panel(strip, image));
  steps = [0, ...new Set(image.strips.flatMap((strip) => strip.rounds))].sort((a, b) => a - b);
  const original = column("original", tile(rounds, image.original, 0, "original image"));
  const damaged = column("damaged", tile(rounds, image.degraded, 0, "damaged image"));
  byId("stage").replaceChildren(original, damaged, ...panels.map((panel) => panel.figure));
  byId("round-last").textContent = steps.at(-1);
  byId("round").max = steps.length - 1;
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
  byId("stage").style.setProperty("--tile", `${Math.max(1, Math.round(128 / rounds.width)) * rounds.width}px`);
  byId("stage").style.setProperty("--shape", `${rounds.width} / ${rounds.height}`);
  byId("watch-image").addEventListener("change", () => { stopPlaying(); showImage(); });
  byId("round").addEventListener("input", () => { stopPlaying(); showRound(); });
  byId("play").addEventListener("click", playOrStop);
  showImage();
}
