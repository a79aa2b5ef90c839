/** Reads the files of the audit log line by line, forwards or backwards, without holding more than a line of them. */
import type { FileHandle } from 'node:fs/promises';
import { MOST_LINE_BYTES } from './audit-line.js';

const CHUNK = 64 * 1024;
const LINE_END = 0x0a;

export interface RawLine {
  /** Without its line end; of one that is longer than any of ours, a part. */
  bytes: Buffer;
  /** Its length in the file, line end included. */
  length: number;
  /** False where the file ends without a line end. */
  ended: boolean;
}

/** From a position to the end of the file as it is when it is reached. */
export async function* linesFrom(file: FileHandle, position = 0): AsyncGenerator<RawLine> {
  let at = position;
  let parts: Buffer[] = [];
  let held = 0;
  let length = 0;
  for (;;) {
    const { bytesRead, buffer } = await file.read(Buffer.allocUnsafe(CHUNK), 0, CHUNK, at);
    if (bytesRead === 0) break;
    at += bytesRead;
    let rest = buffer.subarray(0, bytesRead);
    for (let end = rest.indexOf(LINE_END); end >= 0; end = rest.indexOf(LINE_END)) {
      keep(rest.subarray(0, end));
      yield { bytes: Buffer.concat(parts), length: length + 1, ended: true };
      parts = [];
      held = 0;
      length = 0;
      rest = rest.subarray(end + 1);
    }
    keep(rest);
  }
  if (length > 0) yield { bytes: Buffer.concat(parts), length, ended: false };

  function keep(part: Buffer): void {
    length += part.length;
    if (held > MOST_LINE_BYTES || part.length === 0) return;
    held += part.length;
    parts.push(part);
  }
}

/** From the end of the file to its beginning, the last line first. */
export async function* linesBackwards(file: FileHandle): AsyncGenerator<Buffer> {
  let at = (await file.stat()).size;
  /** The beginning of the line that was not found yet, from its later parts to its earlier ones. */
  let parts: Buffer[] = [];
  let held = 0;
  let isLast = true;
  while (at > 0) {
    const length = Math.min(CHUNK, at);
    at -= length;
    const { buffer, bytesRead } = await file.read(Buffer.allocUnsafe(length), 0, length, at);
    let rest = buffer.subarray(0, bytesRead);
    for (let end = rest.lastIndexOf(LINE_END); end >= 0; end = rest.lastIndexOf(LINE_END)) {
      keep(rest.subarray(end + 1));
      // Behind the last line end there is nothing, mostly.
      if (!isLast || held > 0) yield line();
      isLast = false;
      parts = [];
      held = 0;
      rest = rest.subarray(0, end);
    }
    keep(rest);
  }
  if (held > 0) yield line();

  function keep(part: Buffer): void {
    if (held > MOST_LINE_BYTES || part.length === 0) return;
    held += part.length;
    parts.push(part);
  }
  function line(): Buffer {
    return Buffer.concat(parts.reverse());
  }
}
