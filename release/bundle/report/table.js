"use strict";
// Search, pages and CSV for the tables of a report. It reads nothing but the page and sends nothing.
// Without it a reader sees the first rows of each table.
(function () {
  const PAGE = 100;

  function element(tag, text, attributes) {
    const made = document.createElement(tag);
    made.textContent = text;
    Object.entries(attributes || {}).forEach(([name, value]) => made.setAttribute(name, value));
    return made;
  }

  function fromPage(table) {
    const heads = Array.from(table.tHead.rows[0].cells, (cell) =>
      cell.dataset.from ? [cell.dataset.from, cell.dataset.to] : [cell.textContent]);
    const rows = Array.from(table.tBodies[0].rows, (row) =>
      Array.from(row.cells, (cell) => cell.textContent));
    return { heads: heads, rows: rows };
  }

  function fromData(columns) {
    const counts = columns.map((column) => (column.rows || column.texts).length);
    const rows = [];
    for (let place = 0; place < Math.max(...counts); place += 1) {
      rows.push(columns.map((column) =>
        column.texts[column.rows ? column.rows[place] : place]));
    }
    return { heads: columns.map((column) => column.ends || [column.head]), rows: rows };
  }

  function csv(data) {
    const quoted = (text) => /[",\r\n]/.test(text) ? '"' + text.replaceAll('"', '""') + '"' : text;
    // An interval has two columns in the file, each with a number that a program can read.
    const spread = (row) => row.flatMap((text, place) => {
      const ends = text.split(" to ");
      return data.heads[place].length === 2 ? [ends[0], ends[ends.length - 1]] : [text];
    });
    return [data.heads.flat(), ...data.rows.map(spread)].map((row) =>
      row.map(quoted).join(",") + "\r\n").join("");
  }

  function addDownload(bar, data, name) {
    const button = element("button", "Download as CSV", { type: "button" });
    button.addEventListener("click", () => {
      const address = URL.createObjectURL(new Blob([csv(data)], { type: "text/csv" }));
      const link = element("a", "", { href: address, download: name + ".csv" });
      document.body.append(link);
      link.click();
      link.remove();
      setTimeout(() => URL.revokeObjectURL(address), 10000);
    });
    bar.append(button);
  }

  function addPages(bar, box, table, data, classes) {
    const label = element("label", "Search ", {});
    const search = element("input", "", { type: "search", autocomplete: "off" });
    const back = element("button", "Previous", { type: "button" });
    const next = element("button", "Next", { type: "button" });
    const status = element("span", "", { role: "status" });
    const words = data.rows.map((row) => row.join("\n").toLowerCase());
    let found = data.rows;
    let first = 0;

    function show() {
      const shown = found.slice(first, first + PAGE);
      table.tBodies[0].replaceChildren(...shown.map((row) => {
        const line = document.createElement("tr");
        row.forEach((text, place) =>
          line.append(element("td", text, classes[place] ? { class: classes[place] } : {})));
        return line;
      }));
      const last = first + shown.length;
      status.textContent = found.length === 0 ? "No row has this." :
        "Rows " + (first + 1).toLocaleString("en") + " to " + last.toLocaleString("en") + " of " +
        found.length.toLocaleString("en") + (found.length < data.rows.length ? " found" : "");
      back.disabled = first === 0;
      next.disabled = last >= found.length;
      box.scrollTop = 0;
    }

    search.addEventListener("input", () => {
      const asked = search.value.trim().toLowerCase();
      found = data.rows.filter((row, place) => words[place].includes(asked));
      first = 0;
      show();
    });
    back.addEventListener("click", () => { first = Math.max(0, first - PAGE); show(); });
    next.addEventListener("click", () => { first += PAGE; show(); });
    label.append(search);
    bar.append(label, back, next, status);
    show();
  }

  // Says in words what the shadow at an edge shows: screens may hide their scrollbars.
  function addHint(box) {
    const hint = element("p", "", { class: "hint", hidden: "" });
    function say() {
      const isWide = box.scrollWidth > box.clientWidth + 1;
      const isLong = box.scrollHeight > box.clientHeight + 1;
      const ways = [isWide ? "sideways" : "", isLong ? "down" : ""].filter((way) => way);
      hint.hidden = ways.length === 0;
      hint.textContent = "There is more: scroll " + ways.join(" and ") + " in the box below.";
    }
    box.before(hint);
    const observer = new ResizeObserver(say);
    [box, ...box.children].forEach((part) => observer.observe(part));
  }

  document.querySelectorAll(".rows").forEach((part) => {
    const box = part.querySelector(".scroll");
    const table = box.querySelector("table");
    const bar = element("div", "", { class: "tools" });
    const stored = part.querySelector('script[type="application/json"]');
    const columns = stored ? JSON.parse(stored.textContent).columns : null;
    const isCut = part.querySelector(".cut") !== null;
    if (isCut && !columns) { return; }
    const data = columns ? fromData(columns) : fromPage(table);
    if (columns) {
      addPages(bar, box, table, data, columns.map((column) =>
        column.ends ? "number interval" : column.number ? "number" : ""));
    }
    addDownload(bar, data, part.dataset.name);
    if (isCut) { part.querySelector(".cut").remove(); }
    part.insertBefore(bar, box);
  });
  document.querySelectorAll(".scroll, .pan").forEach(addHint);
})();
