/** Meters of models: they check the daily limits before each request and count its usage; a crash loses what one turn has used so far. */
import { estimateTokens } from '../core/cut.js';
import { describe, type Fault } from '../core/errors.js';
import type { PersonaId } from '../core/ids.js';
import type { ModelEvent, ModelRequest, Prices, Usage } from '../core/model.js';
import type { Spent } from '../core/store.js';
import { type Account, limitFault, limitsIn, statusesOf } from './limits-today.js';
import type { BaseServices, DailyLimits, Deliver, MeteredModel, Payer } from './services.js';
import { addedUsage, spentOn, tokensOf, writtenCalls } from './turn/tokens.js';

export function createDailyLimits(services: BaseServices & { deliver: Deliver }): DailyLimits {
  const limits = limitsIn(services.settings.limits);
  const countsPeople = limits.some(({ scope }) => scope === 'person');
  /** Usage that counts towards limits before it is stored. */
  const unpaid = new Set<Account>();
  const statuses = async (payer: Payer) =>
    limits.length === 0 ? [] : statusesOf(services, limits, unpaid, payer);
  const reached = async (payer: Payer) =>
    (await statuses(payer)).find(({ used, most }) => used >= most) ?? null;
  const meter = (payer: Payer) => createMeter(services, payer, reached, unpaid, countsPeople);
  return { statuses, reached, meter };
}

function createMeter(
  { store, clock, log, model, deliver }: BaseServices & { deliver: Deliver },
  payer: Payer,
  reached: DailyLimits['reached'],
  unpaid: Set<Account>,
  countsPeople: boolean,
): MeteredModel {
  const { room, personaId, personId } = payer;
  const account: Account = { payer, due: null };

  async function* stream(request: ModelRequest, signal: AbortSignal): AsyncGenerator<ModelEvent> {
    const limit = await reached(payer);
    if (limit) {
      yield { kind: 'failed', fault: limitFault(limit) };
      return;
    }
    const isAsked = !signal.aborted;
    let written = '';
    for await (const event of model.stream(request, signal)) {
      if (event.kind === 'text') written += event.delta;
      if (event.kind === 'done') {
        const { text, calls, prices } = event;
        const usage = spentOn(event);
        const isCounted = usage !== null && usage.inputTokens + usage.outputTokens > 0;
        add(isCounted ? usage : estimated(request, text + writtenCalls(calls)), prices);
      }
      if (event.kind === 'failed' && isAsked && (signal.aborted || hasWorked(event.fault, written)))
        add(estimated(request, written), event.prices);
      if (event.kind === 'done' || event.kind === 'failed')
        for (const notice of event.notices ?? []) await deliver.tellOwners(notice);
      yield event;
    }
  }

  function add(usage: Usage, prices: Prices | undefined): void {
    account.due = addedUsage(account.due, prices ? { ...usage, cost: costOf(usage, prices) } : usage);
    unpaid.add(account);
  }

  function spent(by: PersonaId): Spent | undefined {
    const { due: usage } = account;
    if (usage === null) return undefined;
    return countsPeople && personId !== null ? { personaId: by, personId, usage } : { personaId: by, usage };
  }

  function paid(): void {
    account.due = null;
    unpaid.delete(account);
  }

  return {
    model: {
      stream,
      contextTokens: (name) => model.contextTokens(name),
      check: (signal) => model.check(signal),
    },
    due: () => account.due,
    spent,
    paid,
    async settle() {
      const left = spent(personaId);
      if (!left) return;
      await store.spend({ ...left, room, now: clock.now() }).catch((error) => {
        log.error({ err: error, room, why: describe(error) }, 'model usage could not be stored');
      });
      paid();
    },
  };
}

/** Cached tokens are charged in full, because servers' discounts differ. */
function costOf({ inputTokens, outputTokens }: Usage, { input, output }: Prices): number {
  return Math.ceil(inputTokens * input + outputTokens * output);
}

/** A server that does not count must not evade the limits. */
function estimated({ messages, tools }: ModelRequest, written: string): Usage {
  const described = tools.length === 0 ? 0 : estimateTokens(JSON.stringify(tools));
  return { inputTokens: tokensOf(messages) + described, outputTokens: estimateTokens(written) };
}

/** A failed request is charged if the server has worked on it. */
function hasWorked({ code }: Fault, written: string): boolean {
  return written !== '' || code === 'model_empty' || code === 'model_endless' || code === 'model_silent';
}
