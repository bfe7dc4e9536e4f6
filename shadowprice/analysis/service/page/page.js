"use strict";
// Text of users is only ever set as text; nothing is loaded from elsewhere.
const INTERVAL_MS = 2000;
const KEY = "shadowprice-token";
if (location.hash.length > 1) {
  sessionStorage.setItem(KEY, decodeURIComponent(location.hash.slice(1)));
  history.replaceState(null, "", location.pathname);
}

function element(kind, text, name) {
  const made = document.createElement(kind);
  if (text !== undefined) made.textContent = text;
  if (name) made.className = name;
  return made;
}

function state(node, device) {
  if (node.lost) return "lost";
  if (device.quarantined) return "quarantined";
  return device.held_by.length ? "held" : "free";
}

function nodeRow(node, prices) {
  const row = element("div", undefined, "node");
  row.append(element("b", `${node.name} (${node.gpu_type})`));
  for (const device of node.devices) {
    const where = state(node, device);
    const words = where === "held" ? device.held_by.join(", ") : where;
    row.append(element("span", `${device.index}: ${words}`, `device ${where}`));
  }
  if (prices && node.name in prices.by_node) {
    row.append(element("span", `price of a GPU ${prices.by_node[node.name].toPrecision(4)}`, "price"));
  }
  return row;
}

function jobRow(job) {
  const row = element("tr");
  row.append(element("td", job.name), element("td", job.user), element("td", job.state));
  row.append(element("td", job.gpus, "number"));
  row.append(element("td", `${job.step.toLocaleString("en")} / ${job.iterations.toLocaleString("en")}`, "number"));
  row.append(element("td", job.waited_s.toFixed(0), "number"), element("td", job.because));
  return row;
}

function show(now) {
  const waiting = now.jobs.filter((job) => job.state === "waiting" || job.state === "expected").length;
  const running = now.jobs.filter((job) => job.state === "running").length;
  tell(`${now.policy} on ${now.hosts}, driver ${now.driver}: ${running} running, ${waiting} waiting; you are ${now.you.user}`);
  document.getElementById("devices").replaceChildren(...now.nodes.map((node) => nodeRow(node, now.prices)));
  document.getElementById("jobs").replaceChildren(...now.jobs.map(jobRow));
  document.getElementById("left-out").textContent = now.left_out ? `${now.left_out} earlier jobs that are over are not listed.` : "";
  document.getElementById("events").replaceChildren(
    ...now.events.map((event) => element("li", `${event.time_s.toFixed(1)} s: ${event.words}`)));
}

function tell(text, wrong) {
  const about = document.getElementById("about");
  about.textContent = text;
  about.classList.toggle("wrong", Boolean(wrong));
}

async function refresh() {
  try {
    const token = sessionStorage.getItem(KEY) || "";
    const answer = await fetch("/v1/state", { headers: { Authorization: `Bearer ${token}` } });
    const body = await answer.json();
    if (answer.ok) show(body);
    else tell(body.error, true);
  } catch (error) {
    tell("The service does not answer.", true);
  }
}

refresh();
setInterval(refresh, INTERVAL_MS);
