"use strict";
// Search and filter: a row or a finding is shown when its state is switched on and its text has
// every word that is searched for.  All text comes from the page and none goes into it as HTML.
(() => {
  const search = document.getElementById("search");
  const boxes = [...document.querySelectorAll(".chip input")];
  const shown = document.getElementById("shown");
  const textOf = (element) =>
    [element.textContent, ...[...element.querySelectorAll("[title]")].map((cell) => cell.title)]
      .join(" ")
      .toLowerCase();
  const rows = [...document.querySelectorAll(".matrix tbody tr")].map((element) => ({
    element,
    text: textOf(element),
    states: element.dataset.states.split(" "),
  }));
  const findings = [...document.querySelectorAll("article")].map((element) => ({
    element,
    text: textOf(element),
    states: [element.dataset.state],
  }));

  const apply = () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const on = new Set(boxes.filter((box) => box.checked).map((box) => box.value));
    const count = (items) => {
      for (const { element, text, states } of items) {
        element.hidden =
          !states.some((state) => on.has(state)) || !words.every((word) => text.includes(word));
      }
      return items.filter(({ element }) => !element.hidden).length;
    };
    const rowsLeft = count(rows);
    const findingsLeft = count(findings);
    for (const section of document.querySelectorAll(".findings")) {
      section.hidden = !section.querySelector("article:not([hidden])");
    }
    const all = rowsLeft === rows.length && findingsLeft === findings.length;
    shown.textContent = all
      ? ""
      : `${findingsLeft} of ${findings.length} findings, ${rowsLeft} of ${rows.length} rows shown`;
  };

  for (const control of [search, ...boxes]) {
    control.hidden = false;
    control.addEventListener("input", apply);
  }
  // A cell leads to its finding, also when the filter has hidden that.
  addEventListener("hashchange", () => {
    const target = document.querySelector(":target");
    if (target && target.hidden) {
      target.hidden = false;
      target.closest("section").hidden = false;
      target.scrollIntoView();
    }
  });
  // A browser that comes back to the page keeps what was typed.
  apply();
})();
