/**
 * What was used in a day: by a persona in a chat (`usage`), and by a person (`spent`), where that is asked for. It is added
 * within the transaction of what it was used for. Today's sums are kept in memory, so that limits can be looked at for
 * nothing.
 */
import type { Zone } from '../../core/dates.js';
import { type ChatId, type PersonaId, type RoomId, roomParts } from '../../core/ids.js';
import type { Usage } from '../../core/model.js';
import type { Amount, UsageStore } from '../../core/store.js';
import { insertInto } from './columns.js';
import type { Connection } from './connection.js';

/** A date of the zone, as its first millisecond in UTC: days stay what they are when the zone changes. */
export type DayOf = (time: number) => number;

export function dayIn(zone: Pick<Zone, 'date'>): DayOf {
  return (time) => Date.parse(`${zone.date(time)}T00:00:00Z`);
}

export type AddUsage = ReturnType<typeof usageAdderOf>;

interface Whose {
  room: RoomId;
  personaId: PersonaId;
  /** Left out: it is not counted for anybody. */
  personId?: ChatId | undefined;
}

const NOTHING: Amount = { tokens: 0, cost: 0 };

const ofChat = (day: number, chatId: ChatId) => `spent ${day} in ${chatId}`;
const ofPerson = (day: number, personId: string) => `spent ${day} by ${personId}`;
const ofAll = (day: number) => `spent ${day}`;

/** Adds turns, and requests to a model outside of turns. To be called within a transaction. */
export function usageAdderOf({ raw, memory }: Pick<Connection, 'raw' | 'memory'>, dayOf: DayOf) {
  const addToPersona = raw.prepare<[object]>(`
    ${insertInto('usage', 'chatId day personaId turns inputTokens outputTokens cachedTokens cost')}
    on conflict do update set turns = turns + excluded.turns, input_tokens = input_tokens + excluded.input_tokens,
      output_tokens = output_tokens + excluded.output_tokens, cached_tokens = cached_tokens + excluded.cached_tokens,
      cost = cost + excluded.cost`);
  const addToPerson = raw.prepare<[object]>(`
    ${insertInto('spent', 'day personId tokens cost')}
    on conflict do update set tokens = tokens + excluded.tokens, cost = cost + excluded.cost`);

  return ({ room, personaId, personId }: Whose, used: Usage & { turns: number }, now: number): void => {
    const { chatId } = roomParts(room);
    const day = dayOf(now);
    addToPersona.run({ cachedTokens: 0, cost: 0, ...used, chatId, personaId, day });
    const amount = { tokens: used.inputTokens + used.outputTokens, cost: used.cost ?? 0 };
    if (amount.tokens === 0 && amount.cost === 0) return;
    memory.change<Map<PersonaId, Amount>>(ofChat(day, chatId), (personas) =>
      new Map(personas).set(personaId, sumOf(personas.get(personaId) ?? NOTHING, amount)),
    );
    memory.change<Amount>(ofAll(day), (before) => sumOf(before, amount));
    if (personId === undefined) return;
    addToPerson.run({ day, personId, ...amount });
    memory.change<Amount>(ofPerson(day, personId), (before) => sumOf(before, amount));
  };
}

export function amountStore(
  { raw, memory, patiently }: Connection,
  dayOf: DayOf,
): Pick<UsageStore, 'spentOn'> {
  const inChat = raw.prepare<[object], Amount & { personaId: PersonaId }>(`
    select persona_id as personaId, input_tokens + output_tokens as tokens, cost
    from usage where chat_id = @chatId and day = @day`);
  const by = raw.prepare<[object], Amount>(
    'select tokens, cost from spent where day = @day and person_id = @id',
  );

  const inAll = raw.prepare<[object], Amount>(`
    select coalesce(sum(input_tokens + output_tokens), 0) as tokens, coalesce(sum(cost), 0) as cost
    from usage where day = @day`);

  return {
    spentOn: ({ chatId, personId, now }) =>
      patiently(() => {
        const day = dayOf(now);
        const personas = memory.get(
          ofChat(day, chatId),
          () => new Map(inChat.all({ chatId, day }).map(({ personaId, ...amount }) => [personaId, amount])),
        );
        return {
          personas,
          person:
            personId === null
              ? NOTHING
              : memory.get(ofPerson(day, personId), () => by.get({ day, id: personId }) ?? NOTHING),
          all: memory.get(ofAll(day), () => inAll.get({ day }) ?? NOTHING),
        };
      }),
  };
}

function sumOf(a: Amount, b: Amount): Amount {
  return { tokens: a.tokens + b.tokens, cost: a.cost + b.cost };
}
