// Talks to the server. Every failure is an Error whose message a person can read.

export async function get(path, options) {
  const response = await fetch(path, options).catch(() => { throw new Error("no_server"); });
  const data = await response.json().catch(() => ({})); // an answer without JSON has only its status
  if (response.ok) return data;
  throw Object.assign(new Error(data.error || `${response.status}`), { status: response.status });
}

export function post(path, data = {}) {
  const headers = { "content-type": "application/json" };
  return get(path, { method: "POST", headers, body: JSON.stringify(data) });
}
