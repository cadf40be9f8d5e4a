// Connect every control of the page.
function showView() {
  for (const part of document.querySelectorAll("[data-view]")) part.hidden = part.dataset.view !== byId("view").value;
}

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

document.documentElement.classList.add("live");
byId("slider").addEventListener("input", fromSlider);
byId("threshold").addEventListener("input", fromText);
byId("threshold").addEventListener("blur", () => { byId("threshold").removeAttribute("aria-invalid"); showThreshold(); });
for (const button of document.querySelectorAll("[data-preset]"))
  button.addEventListener("click", () => setThreshold(Number(button.dataset.preset)));
for (const form of document.forms) form.addEventListener("submit", (event) => event.preventDefault());
byId("view")?.addEventListener("change", showView);
byId("copy")?.addEventListener("click", copyCommand);
onThreshold(showThreshold);
onThreshold(updateRates);
onThreshold(moveThresholdLines);
startGallery();
startRounds();
