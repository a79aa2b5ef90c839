/**
 * How far the heap may grow before V8 collects all of it. Left to itself, V8 lets it grow to several times what is in use:
 * with a hundred chats talking, a hundred megabytes of requests that were answered long ago.
 */
import { setFlagsFromString } from 'node:v8';

const GROWING_PERCENT = 40;

/**
 * From now on, until what it returns is called. Not during a start or an end: code that V8 has cached is only good under
 * the flags under which it was cached, and would be compiled anew.
 */
export function collectSooner(): () => void {
  setFlagsFromString(`--heap-growing-percent=${GROWING_PERCENT}`);
  return () => setFlagsFromString('--heap-growing-percent=0');
}
