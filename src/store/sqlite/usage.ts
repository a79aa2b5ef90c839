/** Adding to what a persona has used in a chat on a day: turns, and what was asked of a model beside them. */
import { sql } from 'drizzle-orm';
import { type PersonaId, type RoomId, roomParts } from '../../core/ids.js';
import type { Usage } from '../../core/model.js';
import type { Connection } from './connection.js';
import { startOfDay } from './rows.js';
import { usage } from './schema.js';

const given = sql.placeholder;

/** To be called within a transaction. */
export type AddUsage = (
  of: { room: RoomId; personaId: PersonaId },
  used: Usage & { turns: number },
  now: number,
) => void;

export function usageAdderOf({ query }: Connection): AddUsage {
  const add = query
    .insert(usage)
    .values({
      chatId: given('chatId'),
      day: given('day'),
      personaId: given('personaId'),
      turns: given('turns'),
      inputTokens: given('inputTokens'),
      outputTokens: given('outputTokens'),
    })
    .onConflictDoUpdate({
      target: [usage.chatId, usage.day, usage.personaId],
      set: {
        turns: sql`${usage.turns} + excluded.turns`,
        inputTokens: sql`${usage.inputTokens} + excluded.input_tokens`,
        outputTokens: sql`${usage.outputTokens} + excluded.output_tokens`,
      },
    })
    .prepare();
  return ({ room, personaId }, { turns, inputTokens, outputTokens }, now) => {
    const { chatId } = roomParts(room);
    add.run({ chatId, day: startOfDay(now), personaId, turns, inputTokens, outputTokens });
  };
}
