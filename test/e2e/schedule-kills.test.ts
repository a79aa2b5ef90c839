/** Scheduled tasks over real kills: whenever the process ends, each is done, and none is fired twice. */

import { join } from 'node:path';
import Database from 'better-sqlite3';
import { afterEach, expect, it } from 'vitest';
import { ANNA } from '../fakes/telegram-chats.js';
import { eventually } from '../harness/gateway.js';
import { type Stage, stage } from '../harness/telegram.js';

let on: Stage;
afterEach(() => on.close());

const TASKS = 8;

it('fires each task once, whenever the process is killed', async () => {
  on = await stage();
  on.model.reply((body) => {
    const last = body.messages.at(-1);
    if (last?.role === 'tool') return 'planned';
    const said = last?.content ?? '';
    const told = [...said.matchAll(/say token(\d+)/g)].map(([, n]) => n);
    if (told.length > 0) return `token${told.join(' token')}`;
    return {
      calls: Array.from({ length: TASKS }, (_, n) => ({
        name: 'schedule_task',
        arguments: {
          prompt: `say token${n}`,
          schedule_type: 'once',
          schedule_value: new Date(Date.now() + 2_500 + n * 150).toISOString(),
        },
      })),
    };
  });
  const first = on.launch();
  on.telegram.say({ text: 'plan' });
  await on.replies(ANNA.id, 1);
  await eventually(
    () => on.model.requests.some(({ body }) => /say token/.test(JSON.stringify(body.messages.at(-1)))),
    'fired',
  );
  await first.stop('SIGKILL');
  const second = on.launch();
  await new Promise((resolve) => setTimeout(resolve, 700));
  await second.stop('SIGKILL');
  await on.start();
  const said = () =>
    on.telegram
      .callsOf('sendMessage')
      .map(({ text }) => String(text))
      .join(' ');
  const all = Array.from({ length: TASKS }, (_, n) => `token${n}`);
  await eventually(() => all.every((token) => said().includes(token)), 'all are done', 20_000);

  const store = new Database(join(on.home.folder, 'data/coterie.db'), { readonly: true });
  const events = store
    .prepare(`select text from message where author_kind = 'gateway'`)
    .pluck()
    .all() as string[];
  const alarms = store.prepare(`select entry from journal where entry like '%AlarmClock%'`).pluck().all();
  store.close();
  expect(events.map((text) => /say (token\d+)/.exec(text)?.[1]).sort()).toEqual(all);
  expect(alarms).toHaveLength(TASKS);
}, 60_000);
