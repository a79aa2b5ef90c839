/** Faces of personas for channels, without decoding any. */
import { createHash } from 'node:crypto';
import type { Portrait, Portraits } from '../../src/core/persona.js';

/** Begins as a JPEG does; different contents are different pictures. */
export function portraitOf(content: string): Portrait {
  const bytes = Buffer.concat([Buffer.from('ffd8ffe000104a464946', 'hex'), Buffer.from(content)]);
  return { hash: createHash('sha256').update(content).digest('hex'), bytes, path: `/portraits/${content}` };
}

export const NO_PORTRAITS: Portraits = { of: async () => null, shared: async () => null };
