// Tables that are wider than the page scroll in a box of their own, which Material makes when a page
// has loaded. A box that scrolls must be in reach of the keyboard.
new MutationObserver(() => {
  for (const box of document.querySelectorAll(".md-typeset__scrollwrap:not([tabindex])")) {
    box.tabIndex = 0;
    box.setAttribute("role", "group");
    box.setAttribute("aria-label", "Table");
  }
}).observe(document, { childList: true, subtree: true });
