// What the browser remembers of a visitor.

// What some work returns; null if the storage is switched off, or what it holds is damaged.
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
