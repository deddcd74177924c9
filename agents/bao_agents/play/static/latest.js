// Requests of one kind, of which a newer one makes the older ones stale.

export class Latest {
  constructor() {
    this.count = 0;
  }

  // Begins a request, which makes those before it stale; returns whether it still counts.
  next() {
    this.count += 1;
    return this.current();
  }

  // Returns whether what is current now still is.
  current() {
    const { count } = this;
    return () => count === this.count;
  }
}
