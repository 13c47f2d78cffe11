/** One press of a person presses one button: neither the second click of a double click nor a key that is held down presses what the first has put in its place, be it another button or another meaning of the same. Buttons that people press several times in a row, such as zoom and steps, are within `data-repeat`. */
export function ignoreSecondPresses(page: Document): void {
  page.addEventListener("click", (event) => (event.detail > 1 ? stopAtButton(event) : undefined), true);
  page.addEventListener("keydown", (event) => (event.repeat && (event.key === "Enter" || event.key === " ") ? stopAtButton(event) : undefined), true);
}

function stopAtButton(event: Event): void {
  if (!(event.target instanceof Element)) return;
  const button = event.target.closest("button, [role=button], [role=menuitem]");
  if (button === null || button.closest("[data-repeat], .react-flow__controls") !== null) return;
  event.preventDefault();
  event.stopImmediatePropagation();
}
