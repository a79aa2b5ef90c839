/**
 * Loaded before the gateway by `NODE_OPTIONS=--import`: its clock jumps with each SIGUSR2, a minute ahead, then a minute
 * behind, then back. What counts time without a date (`performance.now`, timers) goes on as on a machine whose clock is set.
 */
import { isMainThread } from 'node:worker_threads';

const SHIFTS_MS = [0, 60_000, -60_000];
const Real = globalThis.Date;
let at = 0;
const now = () => Real.now() + SHIFTS_MS[at % SHIFTS_MS.length];

globalThis.Date = new Proxy(Real, {
  construct: (target, given, made) => Reflect.construct(target, given.length === 0 ? [now()] : given, made),
  apply: () => new Real(now()).toString(),
  get: (target, name) => (name === 'now' ? now : Reflect.get(target, name)),
});
if (isMainThread)
  process.on('SIGUSR2', () => {
    at += 1;
  });
