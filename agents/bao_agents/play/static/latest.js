// Keeps track of requests of one kind: a newer request makes the older ones stale.

export class Latest {
  constructor() {
    this.count = 0;
  }

  // Starts a request and makes the earlier ones stale; returns a function that tells whether this
  // request is still the latest.
  next() {
    this.count += 1;
    return this.current();
  }

  // Returns a function that tells whether the current request is still the latest.
  current() {
    const { count } = this;
    return () => count === this.count;
  }
}
