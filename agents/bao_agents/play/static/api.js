// Talks to the server. Every failure is an Error whose message a person can read.

async function ask(path, options) {
  const response = await fetch(path, options).catch(() => { throw new Error("no_server"); });
  const data = await response.json().catch(() => ({})); // an answer without JSON has only its status
  if (response.ok) return data;
  throw Object.assign(new Error(data.error || `${response.status}`), { status: response.status });
}

export function get(path) {
  return ask(path);
}

export function post(path, data = {}) {
  return ask(path, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(data),
  });
}
