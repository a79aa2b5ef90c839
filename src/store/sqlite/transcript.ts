/**
 * A persona's view of a room's transcript, read in the order in which it heard it: the window, for step 4 of the
 * route, and spans of it, for flushes and archives. Reads only what it shows.
 */
import { and, eq, sql } from 'drizzle-orm';
import type { PersonaId } from '../../core/ids.js';
import type { Step } from '../../core/transcript.js';
import {
  END,
  type HeardMessage,
  isBehind,
  type Place,
  type Span,
  type ViewRecord,
  type ViewStore,
} from '../../core/view.js';
import type { Connection } from './connection.js';
import { asHeard } from './heard-rows.js';
import type { Lately } from './lately.js';
import { step, turn } from './schema.js';
import { behindReset, type Views } from './views.js';

export function transcriptStore(
  { query, raw, read }: Connection,
  views: Views,
  lately: Lately,
): Pick<ViewStore, 'window' | 'span'> {
  // Only places: they stand in an index, and most of the messages there were read before. By hand, since drizzle's mapping
  // of rows takes longer than reading them. SQLite compiles a statement anew whenever a bare parameter of its LIMIT is
  // bound: hence the sum.
  const heard = (order: 'asc' | 'desc') =>
    raw
      .prepare<[HeardAsk], [heardAfter: number, messageId: number]>(`
      select heard_after, message_id
      from heard
      where room_id = @room and persona_id = @personaId and addressed = @addressed
        and (heard_after, message_id) > (@afterHeard, @afterMessage)
        and (heard_after, message_id) <= (@toHeard, @toMessage)
        and message_id > @resetAt
      order by heard_after ${order}, message_id ${order}
      limit @limit + 0`)
      .raw();
  const newestHeard = heard('desc');
  const oldestHeard = heard('asc');
  const stepsOf = query
    .select({ turnId: step.turnId, body: step.body })
    .from(turn)
    .innerJoin(step, eq(step.turnId, turn.id))
    .where(
      and(
        sql`${turn.id} in (select value from json_each(${sql.placeholder('turnIds')}))`,
        eq(turn.personaId, sql.placeholder('personaId')),
        sql`${turn.usedTools} = 1`,
      ),
    )
    .orderBy(step.turnId, step.n)
    .prepare();

  type Order = typeof newestHeard;

  function hear(order: Order, ask: HeardAsk): HeardMessage[] {
    const places = order.all(ask);
    const messageOf = lately.of(places.map(([, messageId]) => messageId));
    const addressed = ask.addressed === 1;
    const found: HeardMessage[] = [];
    // A loop: hundreds of them in every turn.
    for (const [heardAfter, messageId] of places) {
      const message = messageOf(messageId);
      if (message) found.push(asHeard(message, heardAfter, addressed));
    }
    return found;
  }

  /** Without what is being answered just now, which was heard last. */
  function newest(ask: HeardAsk, except: ReadonlySet<number>): HeardMessage[] {
    const isOther = ({ id }: HeardMessage) => !except.has(id);
    const found = hear(newestHeard, ask);
    const others = found.filter(isOther);
    const left = found.length - others.length;
    if (left === 0 || found.length < ask.limit) return others;
    return hear(newestHeard, { ...ask, limit: ask.limit + left }).filter(isOther);
  }

  function spanOf(personaId: PersonaId, messages: HeardMessage[], more: boolean): Span {
    const turnIds = new Set(
      messages.flatMap(({ author, turnId }) =>
        turnId === null || author.kind !== 'persona' || author.id !== personaId ? [] : [turnId],
      ),
    );
    const steps = new Map<string, Step[]>();
    for (const { turnId, body } of stepsOf.all({ personaId, turnIds: JSON.stringify([...turnIds]) })) {
      steps.set(turnId, [...(steps.get(turnId) ?? []), body]);
    }
    return { messages, steps, more };
  }

  return {
    window: ({ room, personaId, limit, overheard, except: ids }) =>
      read(() => {
        const except = new Set(ids);
        const view = views.find(room, personaId);
        const ask = heardAsk(view, behindReset(view, view.windowAfter), END);
        const found = newest({ ...ask, addressed: 1, limit: limit + 1 }, except);
        const toIt = found.slice(0, limit);
        const aside = newest({ ...ask, addressed: 0, limit: overheard }, except);
        const more = found.length > limit;
        const oldest = more ? toIt.at(-1)?.place : undefined;
        // Where the limit cut what was said to the persona, older things it overheard are cut, too: no holes.
        const recent = oldest ? aside.filter(({ place }) => isBehind(place, oldest)) : aside;
        return { view, ...spanOf(personaId, merged([...recent, ...toIt]), more) };
      }),

    span: ({ room, personaId, after, upTo, limit, overheard }) =>
      read(() => {
        const view = views.find(room, personaId);
        const ask = heardAsk(view, behindReset(view, after), upTo);
        const found = hear(oldestHeard, { ...ask, addressed: 1, limit: limit + 1 });
        const toIt = found.slice(0, limit);
        const more = found.length > limit;
        const end = more ? (toIt.at(-1)?.place ?? upTo) : upTo;
        const to = { toHeard: end.heardAfter, toMessage: end.messageId };
        const aside = hear(newestHeard, { ...ask, ...to, addressed: 0, limit: overheard });
        return spanOf(personaId, merged([...aside, ...toIt]), more);
      }),
  };
}

function heardAsk(view: ViewRecord, after: Place, to: Place) {
  return {
    room: view.room,
    personaId: view.personaId,
    resetAt: view.resetAt,
    afterHeard: after.heardAfter,
    afterMessage: after.messageId,
    toHeard: to.heardAfter,
    toMessage: to.messageId,
  };
}

interface HeardAsk extends ReturnType<typeof heardAsk> {
  addressed: 0 | 1;
  limit: number;
}

/** In the order of their places, each message once. */
function merged(all: HeardMessage[]): HeardMessage[] {
  const sorted = all.sort((a, b) => (isBehind(a.place, b.place) ? 1 : -1));
  // In databases of the first version, a message that waited again after an abort was heard twice: the newest time
  // counts, so it comes last.
  const byId = new Map<number, HeardMessage>();
  for (const one of sorted) {
    byId.delete(one.id);
    byId.set(one.id, one);
  }
  return [...byId.values()];
}
