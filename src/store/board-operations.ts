/** `OperationsFeed`: read for the page alone, while somebody looks at it. */
import type { LetIn, OperationsFeed, Spending } from '../core/board.js';
import type { Job } from '../core/jobs.js';
import * as db from './db.js';
import { JOB_COLUMNS, type JobRow, toJob } from './jobs.js';
import { dayOf } from './values.js';

/** A request's row outlives it, and has the name under which somebody asked. */
const LET_IN = `
  select id, kind, owner, approved_at as since, coalesce(
      (select title from chat where chat.id = approval.id),
      (select name from pairing where pairing.id = approval.id)) as name
  from approval where revoked_at is null order by approved_at desc, id`;

const OPEN_JOBS = `
  select ${JOB_COLUMNS}, chat.title from job left join chat on chat.id = job.chat_id
  where job.state in ('active', 'paused', 'parked')
  order by case job.state when 'active' then 0 else 1 end, job.next_at, job.id limit @most + 0`;

const MOST_SPENDERS = 20;
const AMOUNT = 'sum(turns) as turns, sum(input_tokens + output_tokens) as tokens, sum(cost) as cost';
const BETWEEN = 'where day between @since and @upTo';
const MOST_FIRST = `order by tokens desc, cost desc limit ${MOST_SPENDERS}`;
const BY_DAY = `select day, ${AMOUNT} from usage ${BETWEEN} group by day order by day`;
const BY_CHAT = `
  select spender as chatId, (select title from chat where id = spender) as title, turns, tokens, cost
  from (select chat_id as spender, ${AMOUNT} from usage ${BETWEEN} group by chat_id ${MOST_FIRST}) as chosen
  order by tokens desc, cost desc, spender`;
const BY_PERSONA = `
  select persona_id as personaId, ${AMOUNT} from usage ${BETWEEN} group by persona_id ${MOST_FIRST}`;
const TODAY = `
  select chat_id as chatId, persona_id as personaId, input_tokens + output_tokens as tokens, cost
  from usage where day = @upTo`;
const PEOPLE_TODAY = 'select person_id as personId, tokens, cost from spent where day = @upTo';

type LetInRow = Omit<LetIn, 'owner'> & { owner: number };
type Days = Spending['days'];
type Today = Spending['today'];

function* spending(days: { since: number; upTo: number }): db.Verb<Spending> {
  return {
    days: yield* db.all<Days[number]>(BY_DAY, days),
    chats: yield* db.all<Spending['chats'][number]>(BY_CHAT, days),
    personas: yield* db.all<Spending['personas'][number]>(BY_PERSONA, days),
    today: {
      personas: yield* db.all<Today['personas'][number]>(TODAY, days),
      people: yield* db.all<Today['people'][number]>(PEOPLE_TODAY, days),
    },
  };
}

export function operationsFeed(database: db.Database): OperationsFeed {
  return {
    letIn: () =>
      database.read(function* () {
        const rows = yield* db.all<LetInRow>(LET_IN);
        return rows.map(({ owner, ...row }) => ({ ...row, owner: owner === 1 }));
      }),
    openJobs: (most) =>
      database.read(function* (): db.Verb<(Job & { title: string | null })[]> {
        const rows = yield* db.all<JobRow & { title: string | null }>(OPEN_JOBS, { most });
        return rows.map(({ title, ...row }) => ({ ...toJob(row), title }));
      }),
    spending: ({ since, now }) =>
      database.read(() => spending({ since: dayOf(database.zone, since), upTo: dayOf(database.zone, now) })),
  };
}
