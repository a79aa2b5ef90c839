/** Command-line options of the bench scripts. */
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

export interface Options {
  quick: boolean;
  /** The Node that runs the bots. */
  node: string;
  /** The gateway's `main.js`. */
  main: string;
  /** Whether it was compiled from this checkout, so that it matches the store compiled into the bench. */
  own: boolean;
}

const OWN_DIST = fileURLToPath(new URL('../../dist', import.meta.url));
/** The gateway of this checkout. */
export const OWN_MAIN = join(OWN_DIST, 'main.js');

/** `--quick`, `--node PATH`, and `--dist PATH` for the compiled gateway of another checkout. */
export function readOptions(): Options {
  const { values } = parseArgs({
    options: {
      quick: { type: 'boolean', default: false },
      node: { type: 'string', default: process.execPath },
      dist: { type: 'string', default: OWN_DIST },
    },
  });
  const dist = resolve(values.dist);
  return { quick: values.quick, node: values.node, main: join(dist, 'main.js'), own: dist === OWN_DIST };
}
