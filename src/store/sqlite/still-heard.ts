/** Which messages somebody may still see: those that a persona heard whom no reset has made forget them. */
import type { PersonaId, RoomId } from '../../core/ids.js';
import type { Connection } from './connection.js';

/** To be called within a transaction; `ids` of messages of the room, in order. */
export type StillHeard = (room: RoomId, ids: readonly number[]) => Set<number>;

export function stillHeardIn({ raw }: Pick<Connection, 'raw'>): StillHeard {
  const resetsOf = raw.prepare<[RoomId], { personaId: PersonaId; resetAt: number }>(
    'select persona_id as personaId, reset_at as resetAt from view where room_id = ?',
  );
  const nextHearer = raw
    .prepare<[RoomId, PersonaId], PersonaId>(
      'select persona_id from heard where room_id = ? and persona_id > ? order by persona_id limit 1',
    )
    .pluck();
  const heardBetween = raw
    .prepare<[object], number>(`
      select message_id from heard
      where room_id = @room and persona_id = @personaId and addressed in (0, 1)
        and heard_after >= @first - 1 and message_id between @first and @last`)
    .pluck();

  return (room, ids) => {
    const [first, last] = [ids[0], ids.at(-1)];
    const resets = new Map(resetsOf.all(room).map(({ personaId, resetAt }) => [personaId, resetAt]));
    const heard = new Set<number>();
    let personaId = nextHearer.get(room, '');
    for (; personaId !== undefined; personaId = nextHearer.get(room, personaId)) {
      const resetAt = resets.get(personaId) ?? 0;
      for (const id of heardBetween.all({ room, personaId, first, last })) if (id > resetAt) heard.add(id);
    }
    return heard;
  };
}
