// Connect every control of the page.
async function copyCommand() {
  const text = byId("command").textContent;
  try {
    await navigator.clipboard.writeText(text);
    byId("copy").textContent = "Copied";
  } catch { // the browser refused: select the text, so that one key press copies it
    getSelection().selectAllChildren(byId("command"));
    byId("copy").textContent = "Selected";
  }
  setTimeout(() => { byId("copy").textContent = "Copy"; }, 1500);
}

// The navigation marks the section that is being read: the last one whose top is above the upper third.
function markSection() {
  const links = [...document.querySelectorAll(".sections a")];
  const above = links.filter((link) => document.querySelector(link.hash).getBoundingClientRect().top < innerHeight / 3);
  const current = above.at(-1) ?? links[0];
  if (current.hasAttribute("aria-current")) return;
  for (const link of links) link.toggleAttribute("aria-current", link === current);
  const list = current.closest("ul");
  list.scrollTo({ left: current.offsetLeft - list.clientWidth / 2 });
}

// Paper has nothing to click: what was checked and set is printed, and folded again afterwards.
const printed = [...document.querySelectorAll("details.passed:not([open]), details.every:not([open])")];
addEventListener("beforeprint", () => { for (const part of printed) part.open = true; });
addEventListener("afterprint", () => { for (const part of printed) part.open = false; });

document.documentElement.classList.add("live");
addEventListener("scroll", markSection, { passive: true });
markSection();
byId("slider").addEventListener("input", fromSlider);
byId("threshold").addEventListener("input", fromText);
byId("threshold").addEventListener("blur", () => { byId("threshold").removeAttribute("aria-invalid"); showThreshold(); });
for (const button of document.querySelectorAll("[data-preset]"))
  button.addEventListener("click", () => setThreshold(Number(button.dataset.preset)));
for (const form of document.forms) form.addEventListener("submit", (event) => event.preventDefault());
byId("copy")?.addEventListener("click", copyCommand);
onThreshold(showThreshold);
onThreshold(updateRates);
onThreshold(moveThresholdLines);
startGallery();
startRounds();
