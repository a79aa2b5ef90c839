/** A persona's file as it is shared for Claude Code, with the real process: it has its memory, and the owner is told. */
import { afterEach, expect, test } from 'vitest';
import { ANNA } from '../fakes/telegram-chats.js';
import { run } from '../harness/gateway.js';
import { type Stage, stage } from '../harness/telegram.js';

const CHAT = `telegram_${ANNA.id}`;
const GARDENER =
  '---\nname: Gardener\ndescription: Use it for plants\ntools: Read, Write, Bash\nmodel: sonnet\ncolor: green\n---\n\nYou know plants.\n';

let on: Stage;
afterEach(() => on.close());

test('keeps its memory and uses the model of the gateway; owner and doctor are told what means nothing here', async () => {
  on = await stage({ config: { access: { direct: 'open', owners: [CHAT], control_chats: [CHAT] } } });
  await on.home.write('groups/personas/gardener.md', GARDENER);
  const gateway = await on.start();
  on.telegram.say({ text: '/persona new Gardener' });
  await on.replies(ANNA.id, 1);
  on.model.reply('Water it.');
  on.telegram.say({ text: 'my fig looks sad' });
  const texts = await on.replies(ANNA.id, 3);
  expect(texts).toContain('Water it.');
  expect(texts.filter((text) => text.includes('Read') && text.includes('sonnet'))).toHaveLength(1);
  const asked = on.model.requests.at(-1)?.body;
  expect(asked?.model).toBe('scripted');
  expect(asked?.tools?.map((tool) => tool.function.name)).toEqual(
    expect.arrayContaining(['write_tiered_memory', 'write_memory', 'search_memory']),
  );
  expect(asked?.messages[0]?.content).toContain('You know plants.');
  on.telegram.say({ text: 'and now?' });
  expect(await on.replies(ANNA.id, 4)).toHaveLength(4);
  const warnings = gateway
    .err()
    .split('\n')
    .filter((line) => line.includes('unreadable parts'));
  expect(warnings).toHaveLength(1);
  const doctor = run(on.home, ['doctor']);
  await doctor.exited;
  expect(doctor.out()).toMatch(/^warning personas: groups\/personas\/gardener\.md: "tools" names "Read"/m);
  expect(doctor.out()).toMatch(/^warning personas: groups\/personas\/gardener\.md: "model" names "sonnet"/m);
});
