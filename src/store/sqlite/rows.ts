/** What statements of several files share. */

const DAY_MS = 86_400_000;

/** The body of an entry of the outbox whose words were forgotten. */
export const NO_WORDS = '{"text":"","marks":[]}';

/** The turn that said what came to be so: as its answer, or beside it through a tool (`tool:<turn>:<key>`). */
export function turnOf(origin: string): string {
  return `case
    when ${origin} like 'turn:%' then substr(${origin}, 6)
    when ${origin} like 'tool:%' then substr(${origin}, 6, instr(substr(${origin}, 6), ':') - 1)
    end`;
}

/** A turn that answers something up to there belongs, as a whole, to what a reset forgets. */
export function beganBefore(upTo: string): string {
  return `json_extract(turn.batch, '$[0]') <= ${upTo}`;
}

/** Usage is summed by day, UTC; a day is named by its first millisecond. */
export function startOfDay(time: number): number {
  return Math.floor(time / DAY_MS) * DAY_MS;
}
