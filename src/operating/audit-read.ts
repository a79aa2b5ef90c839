/** The newest entries of the audit log, searched from its end through all files, while others write. */
import type { FileHandle } from 'node:fs/promises';
import { join } from 'node:path';
import { CURRENT, olderFiles, openIfThere } from './audit-files.js';
import { type AuditLine, readLine } from './audit-line.js';
import { linesBackwards } from './audit-lines.js';

export interface FoundEntries {
  /** Oldest first. */
  lines: AuditLine[];
  /** Lines on the way that are not as they were written, or none of ours. */
  strange: number;
}

export async function newestEntries(
  folder: string,
  ask: {
    matches(line: AuditLine): boolean;
    most: number;
    /** Looks no further back than this. */
    mostBytes?: number;
  },
): Promise<FoundEntries> {
  const { matches, most, mostBytes = Number.POSITIVE_INFINITY } = ask;
  const lines: AuditLine[] = [];
  let strange = 0;
  let bytesRead = 0;
  search: for await (const file of newestFirst(folder)) {
    for await (const bytes of linesBackwards(file)) {
      const read = readLine(bytes);
      if (!read?.intact) strange += 1;
      if (read && matches(read.line)) lines.push(read.line);
      bytesRead += bytes.length;
      if (lines.length >= most || bytesRead > mostBytes) break search;
    }
  }
  return { lines: lines.reverse(), strange };
}

/** The current one is opened before the older ones are listed, so that one that is renamed meanwhile is not missed. */
async function* newestFirst(folder: string): AsyncGenerator<FileHandle> {
  const seen = new Set<number>();
  const current = await openIfThere(join(folder, CURRENT));
  const older = (await olderFiles(folder)).reverse();
  const opened = [
    async () => current,
    ...older.map(
      ({ name }) =>
        () =>
          openIfThere(join(folder, name)),
    ),
  ];
  for (const next of opened) {
    const file = await next();
    if (file === null) continue;
    try {
      const { ino } = await file.stat();
      if (!seen.has(ino)) yield file;
      seen.add(ino);
    } finally {
      await file.close();
    }
  }
}
