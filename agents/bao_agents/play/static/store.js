// Keeps in the browser what the page remembers of a visitor.

// Returns the result of some work; null if the storage is switched off or its data is damaged.
function quietly(work) {
  try {
    return work();
  } catch {
    return null;
  }
}

export const remembered = (name) => quietly(() => localStorage.getItem(`bao ${name}`));
export const recall = (name) => quietly(() => JSON.parse(remembered(name)));
export const remember = (name, value) => quietly(() => localStorage.setItem(`bao ${name}`, value));
