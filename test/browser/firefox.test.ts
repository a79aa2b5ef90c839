/** The chat of the first run in another engine: talk, make a persona, have something remembered, and ask for it. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type FakeModel, startFakeModel } from '../fakes/model.js';
import { type Home, makeHome, type Running, run } from '../harness/gateway.js';
import { remembering } from './board.js';
import { describeInFirefox, type Firefox, startFirefox } from './firefox.js';

describeInFirefox('the chat in Firefox', () => {
  let firefox: Firefox;
  let model: FakeModel;
  let home: Home;
  let gateway: Running;
  beforeAll(async () => {
    firefox = await startFirefox();
    model = await startFakeModel({ reply: remembering });
    home = await makeHome({
      ...{ board: { port: 0 }, timezone: 'UTC', conversation: { debounce_ms: 0 } },
      model: { base_url: model.url, name: 'fake', context_tokens: 100_000 },
    });
    gateway = run(home);
  }, 90_000);
  afterAll(async () => {
    await firefox?.close();
    await gateway?.stop();
    await model?.close();
    await home?.remove();
  });

  it('grows, makes a persona, shows what was remembered, and knows it after a reload', async () => {
    await firefox.open(`${await gateway.url()}/`);
    await firefox.find('status', 'Connection', 'Connected');
    const say = async (text: string) => {
      await firefox.click(await firefox.find('textbox', 'Message'));
      await firefox.type(`${text}\n`);
    };
    await say('Good morning');
    await firefox.find('article', undefined, 'echo: Good morning');

    await firefox.click(await firefox.find('button', 'New persona'));
    await firefox.find('dialog', 'New persona');
    await firefox.click(await firefox.find('textbox', 'Name'));
    await firefox.type('Luna');
    await firefox.click(await firefox.find('textbox', 'Character'));
    await firefox.type('An astronomer, dry and kind.');
    await firefox.click(await firefox.find('button', 'Create'));
    await firefox.find('radio', 'Luna');

    await say('remember that I drink tea without sugar');
    const answer = await firefox.find('article', undefined, 'I will remember it.');
    expect(await firefox.text(answer)).toContain('I drink tea without sugar');
    expect(await home.read('groups/board_main/luna/MEMORY.md')).toContain('tea without sugar');

    await firefox.reload();
    await firefox.find('status', 'Connection', 'Connected');
    await say('What do you remember?');
    await firefox.find('article', undefined, 'I remember: I drink tea without sugar.');
    const own = await firefox.evaluate(
      'JSON.stringify([...document.querySelectorAll("[role=log] .own")].map((each) => each.textContent))',
    );
    for (const text of ['Good morning', 'without sugar', 'What do you remember?']) {
      expect(String(own).split(text), text).toHaveLength(2);
    }
    expect(firefox.faults).toEqual([]);
  });
});
