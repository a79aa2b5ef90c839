/** SQL fragments and values that several files share. */

const DAY_MS = 86_400_000;

/** The body of an outbox entry whose text was forgotten. */
export const NO_WORDS = '{"text":"","marks":[]}';

/** Something that was heard in the room changes: cached copies of its windows become void. */
export const REVISE_ROOM = 'update room set revision = revision + 1 where id = ?';

/** The turn behind an origin: of its answer, or of a side message (`tool:<turn>:<key>`). */
export function turnOf(origin: string): string {
  return `case
    when ${origin} like 'turn:%' then substr(${origin}, 6)
    when ${origin} like 'tool:%' then substr(${origin}, 6, instr(substr(${origin}, 6), ':') - 1)
    end`;
}

/** A reset forgets a whole turn if any message that it answers is at or before the reset mark. */
export function beganBefore(upTo: string): string {
  return `json_extract(turn.batch, '$[0]') <= ${upTo}`;
}

/** Usage is summed by UTC day; a day is identified by its first millisecond. */
export function startOfDay(time: number): number {
  return Math.floor(time / DAY_MS) * DAY_MS;
}
