/** Adds to a persona's usage in a chat on a day: turns, and requests to a model outside of turns. */
import { type PersonaId, type RoomId, roomParts } from '../../core/ids.js';
import type { Usage } from '../../core/model.js';
import type { Connection } from './connection.js';
import { startOfDay } from './rows.js';

/** To be called within a transaction. */
export type AddUsage = (
  of: { room: RoomId; personaId: PersonaId },
  used: Usage & { turns: number },
  now: number,
) => void;

export function usageAdderOf({ raw }: Connection): AddUsage {
  const add = raw.prepare<[object]>(`
    insert into usage (chat_id, day, persona_id, turns, input_tokens, output_tokens, cached_tokens)
    values (@chatId, @day, @personaId, @turns, @inputTokens, @outputTokens, @cachedTokens)
    on conflict do update set turns = turns + excluded.turns, input_tokens = input_tokens + excluded.input_tokens,
      output_tokens = output_tokens + excluded.output_tokens, cached_tokens = cached_tokens + excluded.cached_tokens`);
  return ({ room, personaId }, { turns, inputTokens, outputTokens, cachedTokens = 0 }, now) => {
    const { chatId } = roomParts(room);
    add.run({ chatId, day: startOfDay(now), personaId, turns, inputTokens, outputTokens, cachedTokens });
  };
}
