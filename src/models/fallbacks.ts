/** Step 5: several model servers as one. When one fails, after its own retries, the next is asked. */
import { describe, Fault } from '../core/errors.js';
import type { Log } from '../core/log.js';
import type { ModelClient, ModelEvent, ModelRequest, Notice, Prices } from '../core/model.js';

/**
 * Asks them in order. A persona's own choice of model only goes to the first server: a fallback has a model of its own.
 * Where all fail, the fault's message holds all of theirs. Its code is the one on which something can be done: where any of
 * them was asked too much, a shorter request may be answered. Else it is the first one's.
 */
export function withFallbacks(first: ModelClient, fallbacks: ModelClient[], log: Log): ModelClient {
  if (fallbacks.length === 0) return first;
  /** The one that answered last, or was asked too much: as long as it is a fallback, requests fit its window, too. */
  let answering = first;

  async function* stream(request: ModelRequest, signal: AbortSignal): AsyncGenerator<ModelEvent> {
    const { model: _, ...withoutModel } = request;
    const faults: Fault[] = [];
    const notices: Notice[] = [];
    let prices: Prices | undefined;
    const told = (event: { notices?: Notice[] }) => {
      const all = [...notices, ...(event.notices ?? [])];
      return all.length > 0 ? { notices: all } : {};
    };
    for (const client of [first, ...fallbacks]) {
      let spoke = false;
      for await (const event of client.stream(client === first ? request : withoutModel, signal)) {
        if (event.kind !== 'failed') {
          spoke = event.kind === 'text';
          if (event.kind !== 'done') {
            yield event;
            continue;
          }
          answering = client;
          yield { ...event, ...told(event) };
          return;
        }
        if (signal.aborted) {
          yield event;
          return;
        }
        faults.push(event.fault);
        prices = event.prices;
        if (event.fault.code === 'context_too_long') answering = client;
        notices.push(...(event.notices ?? []));
      }
      if (faults.length <= fallbacks.length) {
        if (spoke) yield { kind: 'restart' };
        log.warn({ error: describe(faults.at(-1)) }, 'the model failed; asking the next fallback');
      }
    }
    const message = faults.map((fault) => fault.message).join(' Then: ');
    const [most] = [...faults.filter(({ code }) => code === 'context_too_long'), ...faults];
    yield {
      kind: 'failed',
      fault: new Fault(most?.code ?? 'internal', message),
      ...(prices && { prices }),
      ...told({}),
    };
  }

  return {
    stream,

    contextTokens(model) {
      const tokens = first.contextTokens(model);
      return answering === first ? tokens : Math.min(tokens, answering.contextTokens());
    },

    async check(signal) {
      const { identity, warnings } = await first.check(signal);
      for (const [index, fallback] of fallbacks.entries()) {
        const name = `fallback ${index + 1}`;
        try {
          const found = await fallback.check(signal);
          warnings.push(...found.warnings.map((warning) => `${name} (${found.identity}): ${warning}`));
        } catch (error) {
          warnings.push(`${name} failed: ${describe(error)}`);
        }
      }
      return { identity, warnings };
    },
  };
}
