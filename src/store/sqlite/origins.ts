/** Which lines of files are words from outside: digests of them, so that nothing of what they say is kept here. */
import { hasMarker } from '../../core/cut.js';
import { lineKey, lineKeys, linesOfText, type Origins } from '../../core/origin.js';
import type { Connection } from './connection.js';

/** Of one file: with more of them it is from outside as a whole, for what was dropped could stand in it still. */
const MOST_LINES = 20_000;
const WHOLE = '';

export type MarkLines = (file: string, lines: readonly string[] | null) => void;

/** To be called within a transaction. */
export function lineMarkerOf({ raw }: Pick<Connection, 'raw'>): MarkLines {
  const mark = raw.prepare<[object]>(`
    insert into outside_line (file, line, n)
    values (@file, @line, (select coalesce(max(n), 0) + 1 from outside_line where file = @file))
    on conflict do update set n = excluded.n`);
  const count = raw.prepare<[object], number>('select count(*) from outside_line where file = @file').pluck();
  const drop = raw.prepare<[object]>('delete from outside_line where file = @file');
  return (file, lines) => {
    const keys = lines === null ? [WHOLE] : lines.flatMap(lineKeys);
    for (const line of new Set(keys)) mark.run({ file, line });
    if (keys.length === 0 || (count.get({ file }) ?? 0) <= MOST_LINES) return;
    drop.run({ file });
    mark.run({ file, line: WHOLE });
  };
}

export function originStore({ raw, read, write }: Connection, markLines: MarkLines): Origins {
  const marked = raw.prepare<[string], string>('select line from outside_line where file = ?').pluck();

  return {
    markOutside: (file, lines) => write(() => markLines(file, lines)),
    async originIn(file, textNow) {
      const keys = new Set(await read(() => marked.all(file)));
      if (keys.size === 0) return 'inside';
      const text = await textNow();
      if (text.trim() === '') return 'inside';
      // Of a line that was cut nobody knows whether it is one of them.
      if (keys.has(WHOLE) || hasMarker(text)) return 'outside';
      return linesOfText(text).some((line) => keys.has(lineKey(line) ?? '-')) ? 'outside' : 'inside';
    },
  };
}
