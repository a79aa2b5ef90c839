/** A file as a terminal shows it: it is on this machine already, so it is said where. Pure. */
import { resolve } from 'node:path';
import type { Part } from '../../core/channel.js';

/** The part as text alone. What steers a terminal, or would look like a line of its own, becomes a `?`. */
export function asText({ text, marks, file }: Part): Part {
  if (file === undefined) return { text, marks };
  const where = `File ${file.name}: ${resolve(file.path)}`.replace(/\p{Cc}/gu, '?');
  const between = text === '' || text.endsWith('\n') ? '' : '\n';
  return { text: `${text}${between}${where}`, marks };
}
