// Round by round: one scrubber for all methods; position 0 is the degraded image they start from.
const rounds = data.rounds;
let panels = [], playing = 0;

function panel(strip, image) {
  const estimate = tile(rounds, null, 0, `estimate of ${strip.method}`);
  const mask = strip.mask === null ? null : tile(rounds, null, 0, `mask estimate of ${strip.method}`);
  const says = element("span", { className: "says" });
  const figure = element("figure", { className: `method slot-${data.slots[strip.method]}` },
    element("figcaption", { textContent: strip.method }), element("div", { className: "pair" }, estimate, mask), says);
  return { strip, image, estimate, mask, says, figure };
}

function showRound() {
  const round = Number(byId("round").value);
  byId("round-number").textContent = round;
  for (const { strip, image, estimate, mask, says } of panels) {
    const place = strip.rounds.findLastIndex((kept) => kept <= round);
    if (round === 0 && image.degraded !== null) drawTile(estimate, image.degraded, 0);
    else drawTile(estimate, strip.estimate, Math.max(0, place));
    if (mask) {
      mask.classList.toggle("unknown", round === 0);
      if (round > 0) drawTile(mask, strip.mask, Math.max(0, place));
    }
    says.textContent = progressWords(round, strip);
  }
}

// The trace may hold only the first rounds of many.
function progressWords(round, strip) {
  if (round === 0) return "start";
  if (round < strip.last) return `round ${round} of ${strip.total}`;
  return strip.total > strip.last ? `round ${strip.last} of ${strip.total}, the last one kept` : `stopped after round ${strip.last}`;
}

function showImage() {
  const image = rounds.images[byId("watch-image").value];
  panels = image.strips.map((strip) => panel(strip, image));
  const still = (name) => image[name] === null ? null
    : element("figure", {}, element("figcaption", { textContent: name }), tile(rounds, image[name], 0, `${name} image`));
  byId("stage").replaceChildren(...[still("original"), still("degraded"), ...panels.map((p) => p.figure)].filter(Boolean));
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
