/** Pages and the clipboard with the real process: from the configuration to the next prompt. */
import { afterEach, expect, it } from 'vitest';
import { type ChatBody, lastUserText } from '../fakes/model.js';
import { ANNA } from '../fakes/telegram-chats.js';
import { type Stage, stage } from '../harness/telegram.js';
import { page, serve } from '../tools/web/support.js';

let on: Stage;
afterEach(() => on?.close());

it('a page is read, and what was put to the clipboard stands in the next prompt', async () => {
  const site = await serve(page('text/html', '<title>Timetable</title><p>Leaves at <b>10:15</b>.</p>'));
  on = await stage({
    config: { tools: { allow: ['clipboard', 'web'], web: { allow_hosts: [site.host] } } },
  });
  const bodies: ChatBody[] = [];
  on.model.reply((body) => {
    bodies.push(body);
    const said = lastUserText(body);
    const results = body.messages.slice(body.messages.findLastIndex(({ role }) => role === 'user') + 1);
    if (results.length > 0 || !said.startsWith('call ')) return { text: 'done' };
    const [, name = '', given = '{}'] = /^call (\w+) (.+)$/.exec(said) ?? [];
    return { calls: [{ name, arguments: JSON.parse(given) }] };
  });
  await on.start();
  const ask = async (text: string, n: number) => {
    on.telegram.say({ text });
    await on.replies(ANNA.id, n);
  };
  const toolResult = () =>
    JSON.stringify(
      bodies
        .at(-1)
        ?.messages.filter(({ role }) => role === 'tool')
        .at(-1),
    );

  await ask(`call web_fetch {"url": "${site.url}/trains"}`, 1);
  expect(site.asked).toEqual(['/trains']);
  expect(toolResult()).toContain('Title: Timetable');
  expect(toolResult()).toContain('Leaves at 10:15.');
  await ask('call manage_clipboard {"action": "add", "content": "train at 10:15"}', 2);
  expect(toolResult()).toContain('Added as number 1.');
  expect(await on.home.read(`data/clipboard/telegram_${ANNA.id}/default.md`)).toMatch(/^train at 10:15/);
  await ask('when?', 3);
  expect(bodies.at(-1)?.messages[0]?.content).toMatch(/# Clipboard\n\n[\s\S]*\n1\. train at 10:15/);
});
