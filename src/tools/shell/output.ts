/** What a command prints, as far as it is kept: its beginning and its end. */

export interface Output {
  take(piece: Buffer): void;
  /** All that was printed, or its beginning and end with a line between them that says how much is left out. */
  text(): string;
}

export function keepEnds(most: number): Output {
  const half = Math.floor(most / 2);
  let bytes = 0;
  const head: Buffer[] = [];
  let room = most - half;
  let tail = Buffer.alloc(0);
  return {
    take(piece) {
      bytes += piece.length;
      const first = piece.subarray(0, room);
      if (first.length > 0) head.push(Buffer.from(first));
      room -= first.length;
      const rest = piece.subarray(first.length);
      if (rest.length > 0) tail = Buffer.concat([tail, rest.subarray(-half)]).subarray(-half);
    },
    text() {
      const kept = Buffer.concat(head);
      const left = bytes - kept.length - tail.length;
      if (left === 0) return plain(Buffer.concat([kept, tail]));
      return `${plain(kept)}\n[… ${left} bytes are left out …]\n${plain(tail)}`;
    },
  };
}

/** A character that was cut in two becomes a sign for one; some readers end at a zero byte. */
function plain(bytes: Buffer): string {
  return new TextDecoder().decode(bytes).replaceAll('\0', '\ufffd');
}
