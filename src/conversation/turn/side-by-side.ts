/**
 * Step 5 of the route: calls that run at the same time, a few at once. Their results are stored as they come, one after
 * the other; when one cannot be stored, the others are ended.
 */
import type { ToolCall } from '../../core/model.js';
import type { Wait } from '../../core/tool.js';
import { type CallsEnd, keep, type TurnAsk, type TurnServices } from './ask.js';
import { fitted } from './bounds.js';
import { type CallResult, type Ready, resultOf } from './call.js';
import { interruptionOf, outcomesOf } from './entries.js';
import { stepOf } from './steps.js';

export interface SideBySide {
  start(call: Ready): void;
  /** Resolves when another may start. */
  room(): Promise<void>;
  /** Resolves when none runs any more, with what ends or suspends the turn; rejects when a result could not be stored. */
  settled(): Promise<CallsEnd | null>;
  /** Ends those that run; resolves when none does. */
  leave(): Promise<void>;
}

const AT_ONCE = 8;
const TWO_WAITS =
  'Not waited for: something else of this turn is waited for already. Make the call again when that has come.';

export function sideBySide(services: TurnServices, ask: TurnAsk): SideBySide {
  const running = new Set<Promise<void>>();
  const failed = new AbortController();
  const signal = AbortSignal.any([ask.signal, failed.signal]);
  let stored: Promise<boolean> = Promise.resolve(true);
  let failure: { error: unknown } | null = null;
  let waiting: { call: ToolCall; wait: Wait } | null = null;

  async function run(call: Ready): Promise<void> {
    const result = await resultOf(services, ask, call, signal);
    if (result === null || signal.aborted) {
      await ask.cutOff?.([interruptionOf(ask, call.call, services.clock.now())]);
    } else if (!('waitsFor' in result)) {
      await store(call.call, result);
    } else if (waiting === null) {
      waiting = { call: call.call, wait: result };
    } else {
      await store(call.call, { content: TWO_WAITS, failed: true });
    }
  }

  async function store(call: ToolCall, result: CallResult): Promise<void> {
    const entries = outcomesOf(ask, call, result, services.clock.now());
    stored = stored.then((isKept) =>
      isKept ? keep(ask, stepOf(call, fitted(result, ask.steps, ask.bounds)), { entries }) : false,
    );
    if (!(await stored)) failed.abort();
  }

  return {
    start(call) {
      const work = run(call)
        .catch((error: unknown) => {
          failure ??= { error };
          failed.abort();
        })
        .finally(() => running.delete(work));
      running.add(work);
    },
    async room() {
      if (running.size >= AT_ONCE) await Promise.race(running);
    },
    async settled() {
      await Promise.all(running);
      if (failure !== null) throw failure.error;
      if (signal.aborted) return { kind: 'dropped' };
      if (waiting === null) return null;
      const { call, wait } = waiting;
      const { waitsFor, until } = wait;
      const isKept = await keep(ask, { kind: 'waiting', callId: call.id, waitsFor, until });
      return isKept ? { kind: 'suspended', waitsFor, until } : { kind: 'dropped' };
    },
    async leave() {
      failed.abort();
      await Promise.all(running);
    },
  };
}
