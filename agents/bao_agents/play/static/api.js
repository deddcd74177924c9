// Talks to the server. Every failure is an Error whose message a person can read.

async function ask(path, options) {
  let response;
  try {
    response = await fetch(path, options);
  } catch {
    throw new Error("no_server");
  }
  let data = {};
  try {
    data = await response.json();
  } catch {
    // An answer without JSON has only its status.
  }
  if (!response.ok) {
    const error = new Error(data.error || `${response.status}`);
    error.status = response.status;
    throw error;
  }
  return data;
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
