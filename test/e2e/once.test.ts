/** The gateway is killed while Telegram has a reply and has not answered yet: the next process finds that it stands there. */
import { afterEach, expect, it } from 'vitest';
import { ANNA, group, type Person } from '../fakes/telegram-chats.js';
import { eventually } from '../harness/gateway.js';
import { type Stage, stage } from '../harness/telegram.js';

const BEN: Person = { id: 100_002, first_name: 'Ben' };

let on: Stage;
afterEach(() => on.close());

const port = 20_000 + (process.pid % 20_000);
const asked = () => on.telegram.callsOf('editMessageReplyMarkup');
const counted = async () => {
  const metrics = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
  return metrics.split('\n').filter((line) => line.startsWith('coterie_uncertain_sends_total'));
};

it.each([
  ['a direct chat', undefined, ANNA.id],
  ['a supergroup', group(-1_001_234_567_890), -1_001_234_567_890],
])('a reply in %s stands once after a kill, with one question', async (_where, chat, id) => {
  on = await stage({ config: { board: { port } } });
  const first = await on.start();
  on.telegram.fail('sendMessage', { stall: 'after' });
  on.telegram.say({ text: `@${on.telegram.bot.username} one`, ...(chat && { chat }) });
  await on.replies(id, 1);
  await first.stop('SIGKILL');
  on.telegram.say({ text: `@${on.telegram.bot.username} two`, ...(chat && { chat }) });
  await on.start();
  await on.replies(id, 2);
  expect(on.telegram.callsOf('sendMessage')).toHaveLength(2);
  expect(asked()).toHaveLength(1);
  expect(await counted()).toEqual(['coterie_uncertain_sends_total{channel="telegram",outcome="found"} 1']);
});

it('a reply that Telegram never had is sent after a kill, when it cannot come late any more', async () => {
  on = await stage({ config: { board: { port } } });
  const first = await on.start();
  on.telegram.fail('sendMessage', { stall: 'before' });
  on.telegram.say({ text: 'one' });
  await eventually(() => on.telegram.callsOf('sendMessage').length === 1, 'it is being sent');
  await first.stop('SIGKILL');
  await on.start();
  expect(await on.replies(ANNA.id, 1)).toEqual(['echo: one']);
  expect(await counted()).toEqual(['coterie_uncertain_sends_total{channel="telegram",outcome="absent"} 1']);
}, 40_000);

it('a reply stands once above what no process has heard yet, however much that is', async () => {
  on = await stage({ config: { board: { port } } });
  const first = await on.start();
  on.telegram.fail('sendMessage', { status: 500 });
  on.telegram.say({ text: 'one' });
  await eventually(() => on.telegram.callsOf('sendMessage').length === 1, 'it is to be sent again');
  await first.stop();
  // Neither the process that sends it nor the next one is told of these.
  on.telegram.fail('getUpdates', { stall: 'before' }, { times: Number.POSITIVE_INFINITY });
  for (let n = 0; n < 70; n++) on.telegram.say({ from: BEN, text: `a crowd ${n}` });
  on.telegram.fail('sendMessage', { stall: 'after' });
  const second = await on.start();
  await on.replies(ANNA.id, 1);
  await second.stop('SIGKILL');
  const third = await on.start();
  await eventually(
    () => on.telegram.callsOf('getWebhookInfo').length > 0 || on.sentTo(ANNA.id).length > 1,
    'it is looked for',
  );
  on.telegram.heal();
  on.telegram.hangUp();
  await third.saw('checked whether an uncertain message was delivered');
  await on.replies(BEN.id, 1);
  expect(on.sentTo(ANNA.id)).toEqual(['echo: one']);
  expect(await counted()).toEqual(['coterie_uncertain_sends_total{channel="telegram",outcome="found"} 1']);
});
