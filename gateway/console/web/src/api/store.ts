/** A value that components follow. */

import { useEffect, useState } from "preact/hooks";

export class Store<T> {
  private readonly followers = new Set<() => void>();

  constructor(private held: T) {}

  get value(): T {
    return this.held;
  }

  set(value: T): void {
    if (Object.is(value, this.held)) return;
    this.held = value;
    for (const follower of [...this.followers]) follower();
  }

  follow(follower: () => void): () => void {
    this.followers.add(follower);
    return () => void this.followers.delete(follower);
  }

  use(): T {
    const [, redraw] = useState(0);
    useEffect(() => this.follow(() => redraw((count) => count + 1)), [this]);
    return this.held;
  }
}
