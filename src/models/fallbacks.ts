/** Asks several servers in order. */
import { describe, Fault } from '../core/errors.js';
import type { Log } from '../core/log.js';
import type { ModelClient, ModelEvent, ModelRequest, Notice, Prices } from '../core/model.js';

/**
 * A persona's own model applies only to the first server; fallbacks have their own. If all fail, the fault holds all messages and the
 * first code, or `context_too_long` if any server gave it, because a shorter request may succeed.
 */
export function withFallbacks(first: ModelClient, fallbacks: ModelClient[], log: Log): ModelClient {
  if (fallbacks.length === 0) return first;
  /** The server that answered last or found a request too long: while it is a fallback, requests must fit its window too. */
  let answering = first;

  async function* stream(request: ModelRequest, signal: AbortSignal): AsyncGenerator<ModelEvent> {
    const { model: _, ...withoutModel } = request;
    const faults: Fault[] = [];
    const notices: Notice[] = [];
    let prices: Prices | undefined;
    for (const client of [first, ...fallbacks]) {
      let spoke = false;
      for await (const event of client.stream(client === first ? request : withoutModel, signal)) {
        if (event.kind === 'text' || event.kind === 'restart') {
          spoke = event.kind === 'text';
          yield event;
          continue;
        }
        notices.push(...(event.notices ?? []));
        const told = notices.length > 0 ? { ...event, notices } : event;
        if (event.kind === 'done') answering = client;
        if (event.kind === 'done' || signal.aborted) return yield told;
        faults.push(event.fault);
        prices = event.prices;
        if (event.fault.code === 'context_too_long') answering = client;
      }
      if (faults.length <= fallbacks.length) {
        if (spoke) yield { kind: 'restart' };
        log.warn({ error: describe(faults.at(-1)) }, 'model failed; asking the next fallback');
      }
    }
    const message = faults.map((fault) => fault.message).join(' Then: ');
    const code = faults.find((fault) => fault.code === 'context_too_long')?.code ?? faults[0]?.code;
    const fault = new Fault(code ?? 'internal', message);
    yield { kind: 'failed', fault, ...(prices && { prices }), ...(notices.length > 0 && { notices }) };
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
