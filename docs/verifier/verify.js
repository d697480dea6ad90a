// Loads Python and the verifier, forbids every connection, and then reads what is dropped.

const byId = (id) => document.getElementById(id);
const state = byId("state");
// As page.py has it, which holds what is unpacked to it too; here before anything is read.
const MOST_BYTES = 2 ** 28;
let python = null;

function say(text) {
  state.textContent = text;
}

async function load() {
  if (location.protocol === "file:") {
    say("A browser runs Python only from a server: say python -m http.server in this folder, and open " +
      "http://localhost:8000/verify.html");
    return;
  }
  let loadPyodide;
  try {
    ({ loadPyodide } = await import("./pyodide/pyodide.mjs"));
  } catch {
    say("This site was built without Python for the browser; run the verifier as one file, below.");
    return;
  }
  const loaded = await loadPyodide();
  const parts = [];
  for (const name of ["dp-release-verify.pyz", "page.py"]) {
    parts.push(new Uint8Array(await (await fetch(name)).arrayBuffer()));
  }
  const [verifier, page] = parts;
  loaded.FS.writeFile("/verifier.pyz", verifier);
  loaded.FS.writeFile("/page.py", page);
  loaded.runPython('import sys; sys.path[:0] = ["/verifier.pyz", "/"]; import page');
  const digest = loaded.runPython(
    'import hashlib; hashlib.sha256(open("/verifier.pyz", "rb").read()).hexdigest()');
  byId("version").textContent = `dp-release-verify.pyz, SHA-256 ${digest}`;
  // From here on the browser itself keeps every file inside: rules of a page add up.
  const rule = document.createElement("meta");
  rule.httpEquiv = "Content-Security-Policy";
  rule.content = "connect-src 'none'; script-src 'none'; img-src 'none'; frame-src 'none'";
  document.head.append(rule);
  python = loaded;
  say("Ready. The page has no connection any more.");
}

// ---- What is dropped ------------------------------------------------------------------------------

/** The bytes of files by their paths; each of `given` is [path, File]. */
async function bytesOf(given) {
  const size = given.reduce((sum, [, file]) => sum + file.size, 0);
  if (size > MOST_BYTES) {
    throw new Error(`more than ${MOST_BYTES / 2 ** 20} MB; drop the public folder of the release`);
  }
  const found = new Map();
  for (const [path, file] of given) {
    found.set(path, new Uint8Array(await file.arrayBuffer()));
  }
  return found;
}

/** All files below an entry of what was dropped, as [path, File]. */
async function filesBelow(entry, path = "") {
  const own = path + entry.name;
  if (entry.isFile) {
    const file = await new Promise((done, fail) => entry.file(done, fail));
    return [[own, file]];
  }
  if (entry.name === "auditor") {
    return [];
  }
  const reader = entry.createReader();
  const found = [];
  for (;;) {
    const batch = await new Promise((done, fail) => reader.readEntries(done, fail));
    if (batch.length === 0) {
      return found;
    }
    for (const each of batch) {
      found.push(...await filesBelow(each, `${own}/`));
    }
  }
}

async function judge(given) {
  byId("verdicts").replaceChildren();
  if (python === null) {
    say("The verifier is not loaded yet.");
    return;
  }
  say("Reading and proving …");
  // Python holds the page while it works, so what is said has to be drawn first.
  await new Promise((done) => setTimeout(done, 50));
  try {
    const files = await bytesOf(given);
    const page = python.pyimport("page");
    const told = page.verdicts(python.toPy(files), byId("keys").value, byId("require").value);
    show(JSON.parse(told));
  } catch (error) {
    say(`Not read: ${error.message}`);
  }
}

// ---- What is shown --------------------------------------------------------------------------------

function element(name, text = "") {
  const made = document.createElement(name);
  made.textContent = text;
  return made;
}

function show(told) {
  if (told.problem) {
    say(`Not read: ${told.problem}`);
    return;
  }
  say(told.verdicts.length === 1 ? "One release." : `${told.verdicts.length} releases.`);
  for (const verdict of told.verdicts) {
    const box = element("article");
    box.className = { 0: "good", 1: "bad", 4: "bad" }[verdict.status] ?? "part";
    const more = element("details");
    more.append(element("summary", "Every finding"), element("pre", verdict.all.join("\n")));
    box.append(element("h2", verdict.head), element("pre", verdict.lines.join("\n")), more);
    byId("verdicts").append(box);
  }
}

// ---- Events ---------------------------------------------------------------------------------------

const place = byId("place");
for (const name of ["dragenter", "dragover"]) {
  document.addEventListener(name, (event) => {
    event.preventDefault();
    place.classList.add("over");
  });
}
document.addEventListener("dragleave", () => place.classList.remove("over"));
document.addEventListener("drop", async (event) => {
  event.preventDefault();
  place.classList.remove("over");
  // Taken before the first wait: afterwards the browser has forgotten them.
  const entries = [];
  const given = [];
  for (const item of event.dataTransfer.items) {
    const entry = item.webkitGetAsEntry();
    const file = item.getAsFile();
    if (entry !== null) {
      entries.push(entry);
    } else if (file !== null) {
      given.push([file.name, file]);
    }
  }
  try {
    for (const entry of entries) {
      given.push(...await filesBelow(entry));
    }
  } catch (error) {
    say(`Not read: ${error.message}`);
    return;
  }
  await judge(given);
});
byId("folder").addEventListener("change", async (event) => {
  const files = [...event.target.files];
  event.target.value = "";
  await judge(files.map((file) => [file.webkitRelativePath, file])
    .filter(([path]) => !path.split("/").includes("auditor")));
});
byId("zip").addEventListener("change", async (event) => {
  const files = [...event.target.files];
  event.target.value = "";
  await judge(files.map((file) => [file.name, file]));
});

load().catch((error) => say(`The verifier could not be loaded: ${error.message}`));
