/**
 * Reads a persona's view of a transcript in the order in which it heard it: the window, for step 4 of the route, and
 * spans, for flushes and archives. Reads only what is shown.
 */
import type { PersonaId } from '../../core/ids.js';
import type { RouteStore } from '../../core/route-store.js';
import type { Step } from '../../core/transcript.js';
import {
  BEGINNING,
  END,
  type HeardMessage,
  isAfter,
  type Position,
  type Span,
  type ViewRecord,
  type ViewStore,
} from '../../core/view.js';
import type { Connection } from './connection.js';
import { HEARD_COLUMNS, type HeardRow, toHeard } from './messages.js';
import { behindReset, type Views } from './views.js';

/** A message, and the steps of its turn if that was the persona's own and used tools: a JSON array of JSON texts. */
type LineRow = [steps: string | null, ...heard: HeardRow];

/** Includes the steps of the persona's own turns that used tools. */
const LINE_COLUMNS = `
  case when author_kind = 'persona' and author_id = @personaId then (
    select json_group_array(body) from (
      select body from step
      where turn_id = (select id from turn where turn.id = message.turn_id and used_tools = 1) order by n))
  end, ${HEARD_COLUMNS}`;

/** What was heard between two positions, of one kind (addressed or overheard). */
const heardBetween = (addressed: 0 | 1, order: 'asc' | 'desc', limit: string) => `
  select * from (
    select room_id, heard_after, message_id, addressed from heard
    where room_id = @room and persona_id = @personaId and addressed = ${addressed}
      and (heard_after, message_id) > (@afterHeard, @afterMessage)
      and (heard_after, message_id) <= (@toHeard, @toMessage)
      and message_id > @resetAt and message_id not in (select value from json_each(@except))
    -- SQLite compiles a statement anew whenever a bare parameter of its LIMIT is bound: hence the sum.
    order by heard_after ${order}, message_id ${order} limit ${limit} + 0)`;

export function transcriptStore(
  { raw, patiently, read }: Connection,
  views: Views,
): Pick<RouteStore, 'window'> & Pick<ViewStore, 'span'> {
  const lines = (heard: string) =>
    raw
      .prepare<[LinesAsk], LineRow>(`
        select ${LINE_COLUMNS} from (${heard}) as line cross join message on message.id = line.message_id`)
      .raw();
  const newest = lines(
    `${heardBetween(1, 'desc', '@limit')} union all ${heardBetween(0, 'desc', '@overheard')}`,
  );
  const oldestAddressed = lines(heardBetween(1, 'asc', '@limit'));
  const newestOverheard = lines(heardBetween(0, 'desc', '@overheard'));

  return {
    window: ({ room, personaId, limit, overheard, except, after = BEGINNING }) =>
      patiently(() => {
        // No transaction is needed: a change by another process between the two reads also moves the room's revision
        // on, so a result built from them is not used again.
        const view = views.find(room, personaId);
        const from = behindReset(view, isAfter(after, view.windowAfter) ? after : view.windowAfter);
        const ask = asked(view, from, END, { limit: limit + 1, overheard, except });
        const found = inOrder(newest.all(ask));
        const toIt = found.filter(({ heard }) => heard.addressed);
        const more = toIt.length > limit;
        if (!more) return { view, ...spanOf(found, false) };
        // Where the limit cuts addressed messages, older overheard ones are left out, too, so that there are no gaps.
        const oldest = toIt[toIt.length - limit]?.heard.position;
        return {
          view,
          ...spanOf(
            found.filter(({ heard }) => (oldest ? !isAfter(oldest, heard.position) : !heard.addressed)),
            true,
          ),
        };
      }),

    span: ({ room, personaId, after, upTo, limit, overheard }) =>
      read(() => {
        const view = views.find(room, personaId);
        const ask = asked(view, behindReset(view, after), upTo, {
          limit: limit + 1,
          overheard,
          except: [],
        });
        const found = oldestAddressed.all(ask).map(toLine);
        const toIt = found.slice(0, limit);
        const more = found.length > limit;
        const end = more ? (toIt.at(-1)?.heard.position ?? upTo) : upTo;
        const aside = newestOverheard.all({
          ...ask,
          toHeard: end.heardAfter,
          toMessage: end.messageId,
        });
        return spanOf(inOrderOf([...toIt, ...aside.map(toLine)]), more);
      }),
  };
}

interface Line {
  heard: HeardMessage;
  steps: string | null;
}

function toLine([steps, ...heard]: LineRow): Line {
  return { heard: toHeard(heard), steps };
}

function asked(
  view: ViewRecord,
  after: Position,
  to: Position,
  { limit, overheard, except }: { limit: number; overheard: number; except: readonly number[] },
) {
  return {
    room: view.room,
    personaId: view.personaId as PersonaId,
    resetAt: view.resetAt,
    afterHeard: after.heardAfter,
    afterMessage: after.messageId,
    toHeard: to.heardAfter,
    toMessage: to.messageId,
    limit,
    overheard,
    except: JSON.stringify(except),
  };
}

type LinesAsk = ReturnType<typeof asked>;

const inOrder = (rows: LineRow[]) => inOrderOf(rows.map(toLine));

/** In order of position, each message once. */
function inOrderOf(lines: Line[]): Line[] {
  const sorted = lines.sort((a, b) => (isAfter(a.heard.position, b.heard.position) ? 1 : -1));
  // In databases of the first version, a message that waited again after an abort was recorded twice: the later one
  // counts.
  const byId = new Map<number, Line>();
  for (const line of sorted) {
    byId.delete(line.heard.id);
    byId.set(line.heard.id, line);
  }
  return [...byId.values()];
}

function spanOf(lines: Line[], more: boolean): Span {
  const steps = new Map<string, Step[]>();
  for (const { heard, steps: done } of lines) {
    if (heard.turnId === null || done === null || done === '[]') continue;
    const bodies: string[] = JSON.parse(done);
    steps.set(
      heard.turnId,
      bodies.map((body) => JSON.parse(body)),
    );
  }
  return { messages: lines.map(({ heard }) => heard), steps, more };
}
