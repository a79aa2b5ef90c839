import { afterEach, describe, expect, it } from 'vitest';
import { ANNA, group, type Person } from '../fakes/telegram-chats.js';
import { eventually, run } from '../harness/gateway.js';
import { type Stage, stage } from '../harness/telegram.js';

const BEN: Person = { id: 100002, first_name: 'Ben' };
const GROUP = group(-1001234567890, 'Garden');

let on: Stage;
afterEach(() => on.close());

const system = (n = -1) => on.model.requests.at(n)?.body.messages[0]?.content ?? '';
const lastUser = (n = -1) => on.model.requests.at(n)?.body.messages.at(-1)?.content ?? '';

it('says once, and in doctor, that Telegram refuses the menu of commands', async () => {
  on = await stage();
  on.telegram.fail(
    'setMyCommands',
    { status: 400, description: 'Bad Request: BOT_COMMAND_INVALID' },
    { times: 2 },
  );
  const gateway = await on.start();
  await eventually(() => on.telegram.callsOf('setMyCommands').length === 2, 'the menu is tried again');
  await gateway.stop();
  expect(gateway.err().match(/"level":"warn".*the command menu could not be set/g)).toHaveLength(1);
  const doctor = run(on.home, ['doctor']);
  await doctor.exited;
  expect(doctor.out()).toMatch(/^warning +telegram: the menu of chat commands .*BOT_COMMAND_INVALID/m);
  await on.start();
  await eventually(() => on.telegram.callsOf('setMyCommands').length === 3, 'the menu is set');
});

describe('a direct chat on Telegram', () => {
  it('is answered by the model, with principles, persona and memory in the request', async () => {
    on = await stage();
    await on.home.write('groups/AGENTS.md', 'Always be kind.');
    const gateway = await on.start();
    on.telegram.say({ text: 'hi' });
    expect(await on.replies(ANNA.id, 1)).toEqual(['echo: hi']);
    expect(system()).toContain('# Principles (highest priority)');
    expect(system()).toContain('Always be kind.');
    expect(system()).toContain(`The current chat_id is telegram_${ANNA.id} and persona_id is default.`);
    expect(system()).not.toContain('# Memory');
    expect(lastUser()).toMatch(
      /^<user_message sender="Anna Berg" at="\d{4}-\d\d-\d\d \d\d:\d\d">hi<\/user_message>$/,
    );
    expect(JSON.stringify(on.model.requests[0]?.body).length).toBeLessThan(11_500);
    expect(await on.home.read(`groups/telegram_${ANNA.id}/default/MEMORY.md`)).toBe(
      '# Memory\n\n## Tier 1 — Long term\n\n## Tier 2 — Mid term\n\n## Tier 3 — Short term\n',
    );
    expect(await gateway.stop()).toBe(0);
  });

  it('sees an operator’s edit of principles, persona, library and memory in the very next request', async () => {
    on = await stage();
    const here = `groups/telegram_${ANNA.id}/default`;
    await on.start();
    on.telegram.say({ text: 'one' });
    await on.replies(ANNA.id, 1);
    await on.home.write('groups/AGENTS.md', 'PRINCIPLE-A');
    await on.home.write('groups/personas/default.md', '---\ntemperature: 0.3\n---\nLIBRARY-A');
    await on.home.write(`${here}/MEMORY.md`, '# Memory\n\n## Tier 1 — Long term\n\nMEMORY-A\n');
    on.telegram.say({ text: 'two' });
    await on.replies(ANNA.id, 2);
    for (const word of ['PRINCIPLE-A', 'LIBRARY-A', 'MEMORY-A']) expect(system()).toContain(word);
    expect(on.model.requests.at(-1)?.body.temperature).toBe(0.3);
    await on.home.write(`${here}/PERSONA.md`, '---\nname: default\nmodel: other-model\n---\nOWN-CHARACTER');
    on.telegram.say({ text: 'three' });
    await on.replies(ANNA.id, 3);
    expect(system()).toContain('OWN-CHARACTER');
    expect(system()).not.toContain('LIBRARY-A');
    expect(on.model.requests.at(-1)?.body.model).toBe('other-model');
  });

  it('answers a burst as one turn, and what comes during a turn in the next', async () => {
    on = await stage({ config: { conversation: { debounce_ms: 300 } } });
    on.model.reply(async (_body, n) => ({ text: `answer ${n + 1}`, headerDelayMs: n === 0 ? 400 : 0 }));
    await on.start();
    on.telegram.say({ text: 'one' });
    on.telegram.say({ text: 'two' });
    await on.model.received(1);
    on.telegram.say({ text: 'three' });
    expect(await on.replies(ANNA.id, 2)).toEqual(['answer 1', 'answer 2']);
    expect(lastUser(0)).toMatch(/one<\/user_message>\n<user_message.*two<\/user_message>$/);
    expect(lastUser(1)).toContain('three');
    const roles = on.model.requests[1]?.body.messages.map(({ role }) => role);
    expect(roles).toEqual(['system', 'user', 'assistant', 'user']);
  });

  it('takes each update once, in order, whatever else comes', async () => {
    on = await stage();
    await on.start();
    const say = async (text: string, n: number) => {
      const said = on.telegram.say({ text });
      on.telegram.push({ update_id: said.updateId, message: said.message });
      on.telegram.push({ poll: { id: '1', question: '?' } });
      on.telegram.push({ message: { message_id: 9, date: 1, chat: { id: ANNA.id, type: 'private' } } });
      return (await on.replies(ANNA.id, n)).at(-1);
    };
    expect(await say('once', 1)).toBe('echo: once');
    expect(await say('😀', 2)).toBe('echo: 😀');
    expect(await say('\u202eשלום \u200bworld', 3)).toBe('echo: \u202eשלום \u200bworld');
    expect(on.model.count()).toBe(3);
  });

  it('writes memory through the tools, and shows it in the next request', async () => {
    on = await stage();
    on.model.reply((body) => {
      const last = body.messages.at(-1);
      if (last?.role === 'tool') return `tool said: ${last.content}`;
      if (!last?.content?.includes('remember')) return 'fine';
      return { calls: [{ name: 'write_tiered_memory', arguments: { tier: 1, content: '- likes tea' } }] };
    });
    await on.start();
    on.telegram.say({ text: 'please remember: tea' });
    const [reply] = await on.replies(ANNA.id, 1);
    expect(reply).toMatch(/likes tea/);
    on.telegram.say({ text: 'and now?' });
    await on.replies(ANNA.id, 2);
    // It is told at the end: the system prompt stays as it was.
    expect(system()).toBe(system(0));
    const messages = on.model.requests.at(-1)?.body.messages ?? [];
    expect(messages.at(-1)?.content).toMatch(/<memory_now>\n[\s\S]*- likes tea[\s\S]*\n<\/memory_now>/);
    // The call stays in the history as a line of its own.
    expect(messages.map(({ role }) => role)).toEqual(['system', 'user', 'assistant', 'user']);
    expect(messages[1]?.content).toMatch(/<event about="your memory">you wrote tier 1<\/event>$/);
  });

  it('replaces the text of a message that waits, and answers an edit during its turn afterwards', async () => {
    on = await stage();
    on.model.reply(async (_body, n) => ({ text: `answer ${n + 1}`, headerDelayMs: 500 }));
    await on.start();
    const first = on.telegram.say({ text: 'what is the capitol' });
    await on.model.received(1);
    const second = on.telegram.say({ text: 'of Fance' });
    on.telegram.edit(second, 'of France');
    on.telegram.edit(first, 'what is the capital');
    await on.replies(ANNA.id, 2);
    expect(lastUser(1)).toContain('of France');
    expect(lastUser(1)).not.toContain('of Fance');
    expect(lastUser(1)).toContain('what is the capital');
    on.telegram.edit(second, 'of Italy');
    on.telegram.say({ text: 'well?' });
    await on.replies(ANNA.id, 3);
    expect(on.model.count()).toBe(3);
    expect(JSON.stringify(on.model.requests[2]?.body.messages)).toContain('of Italy');
  });

  it('splits a long answer without losing a character, and keeps its markup', async () => {
    on = await stage();
    const code = Array.from({ length: 300 }, (_, n) => `line ${n} of the code`).join('\n');
    on.model.reply(`Here **it** is:\n\n\`\`\`js\n${code}\n\`\`\``);
    await on.start();
    on.telegram.say({ text: 'code please' });
    await eventually(() => on.sentTo(ANNA.id).join().includes('line 299'), 'the last line is sent');
    const texts = on.sentTo(ANNA.id);
    for (const line of code.split('\n'))
      expect(texts.some((text) => text.split('\n').includes(line))).toBe(true);
    for (const { entities } of on.telegram.sent)
      expect(entities.some((entity) => entity.type === 'pre')).toBe(true);
  });
});

describe('commands on Telegram', () => {
  it('/reset forgets for good and answers at once, while a turn hangs', async () => {
    on = await stage();
    on.model.reply((body) => {
      const said = body.messages.at(-1)?.content ?? '';
      return said.includes('hang') ? { stall: 'headers' as const } : `echo ${body.messages.length}`;
    });
    await on.start();
    on.telegram.say({ text: 'my secret is swordfish' });
    await on.replies(ANNA.id, 1);
    on.telegram.say({ text: 'hang' });
    await on.model.received(2);
    on.telegram.say({ text: '/reset' });
    const cleared = 'Conversation cleared. Principles and per-persona memory are unchanged.';
    expect((await on.replies(ANNA.id, 2))[1]).toBe(cleared);
    on.telegram.say({ text: 'what was it?' });
    expect((await on.replies(ANNA.id, 3))[2]).toBe('echo 2');
    expect(JSON.stringify(on.model.requests.at(-1)?.body)).not.toContain('swordfish');
    expect(on.model.requests[1]?.abandoned).toBe(true);
  });

  it('/stop ends a turn that hangs; commands are never stored or sent to the model', async () => {
    on = await stage();
    on.model.reply((_body, n) => (n === 0 ? { stall: 'headers' as const } : 'later'));
    await on.start();
    on.telegram.say({ text: '/stop' });
    expect(await on.replies(ANNA.id, 1)).toEqual(['There is nothing to stop.']);
    on.telegram.say({ text: 'hang' });
    await on.model.received(1);
    on.telegram.say({ text: '/stop' });
    expect((await on.replies(ANNA.id, 2))[1]).toBe('Stopped.');
    on.telegram.say({ text: 'go on' });
    expect((await on.replies(ANNA.id, 3))[2]).toBe('later');
    expect(JSON.stringify(on.model.requests.at(-1)?.body.messages)).not.toContain('/stop');
  });

  it('/persona makes, switches, shows and deletes personas; each has its own conversation and memory', async () => {
    on = await stage({ config: { access: { direct: 'open', owners: [`telegram_${ANNA.id}`] } } });
    await on.home.write('groups/personas/sage.md', '---\nname: Sage\n---\nYou are SAGE-TEXT.');
    await on.start();
    const ask = async (text: string, n: number) => {
      on.telegram.say({ text });
      return (await on.replies(ANNA.id, n)).at(-1);
    };
    await ask('my number is 42', 1);
    expect(await ask('/persona new Luna from sage', 2)).toBe('Created persona Luna and switched to it.');
    await ask('hello Luna', 3);
    expect(system()).toContain('SAGE-TEXT');
    expect(system()).toContain('persona_id is luna');
    expect(JSON.stringify(on.model.requests.at(-1)?.body)).not.toContain('my number is 42');
    expect(await ask('/persona', 4)).toContain('Personas: default, Luna (active).');
    await ask('@default what is it?', 5);
    expect(system()).toContain('persona_id is default');
    expect(JSON.stringify(on.model.requests.at(-1)?.body)).toContain('my number is 42');
    expect(await ask('/persona model luna other-model', 6)).toBe('Luna now uses the model other-model.');
    await ask('luna: hm', 7);
    expect(on.model.requests.at(-1)?.body.model).toBe('other-model');
    expect(await ask('/persona delete luna', 8)).toMatch(/^Deleted persona Luna\./);
    expect(await ask('/persona delete default', 9)).toMatch(/default/);
    expect(await ask('/persona switch nobody', 10)).toMatch(/no persona named nobody/);
    expect(await ask('/persona frobnicate', 11)).toMatch(/^Usage/);
    expect(await on.home.read(`groups/telegram_${ANNA.id}/luna/MEMORY.md`)).not.toBeNull();
    expect(await on.home.read(`groups/telegram_${ANNA.id}/luna/PERSONA.md`)).toBeNull();
  });

  it('/start, /help, /whoami, /status and /usage answer plainly; unknown slash text goes to the model', async () => {
    on = await stage({ config: { access: { owners: [`telegram_${ANNA.id}`] } } });
    await on.start();
    for (const text of ['/start', '/help', '/whoami', '/status', '/usage', '/frobnicate'])
      on.telegram.say({ text });
    const texts = await on.replies(ANNA.id, 6);
    const all = texts.join('\n');
    expect(all).toMatch(/Hello, I am default/);
    expect(all).toMatch(/\/persona/);
    expect(all).toMatch(/You are an owner/);
    expect(all).toMatch(/scripted/);
    expect(all).toContain('echo: /frobnicate');
    await eventually(() => on.telegram.callsOf('setMyCommands').length === 1, 'the menu is set');
  });
});

describe('groups and topics on Telegram', () => {
  it('listens quietly until it is mentioned, named or replied to', async () => {
    on = await stage();
    await on.start();
    on.telegram.say({ chat: GROUP, text: 'the roses need water' });
    on.telegram.say({ chat: GROUP, from: BEN, text: `@${on.telegram.bot.username} who said what?` });
    await on.replies(GROUP.id, 1);
    expect(on.model.count()).toBe(1);
    const shown = JSON.stringify(on.model.requests[0]?.body.messages);
    expect(shown).toContain('Anna Berg');
    expect(shown).toContain('the roses need water');
    expect(on.telegram.sent[0]?.replyTo).not.toBeNull();
    on.telegram.say({ chat: GROUP, text: 'why?', replyTo: on.telegram.sent[0]?.messageId ?? 0 });
    await on.replies(GROUP.id, 2);
  });

  it('keeps topics apart, and shares their memory', async () => {
    on = await stage();
    await on.start();
    const name = `@${on.telegram.bot.username}`;
    on.telegram.say({ chat: GROUP, topic: 5, text: `${name} in five` });
    await on.replies(GROUP.id, 1);
    on.telegram.say({ chat: GROUP, topic: 6, text: `${name} in six` });
    await on.replies(GROUP.id, 2);
    on.telegram.say({ chat: GROUP, text: `${name} in general` });
    await on.replies(GROUP.id, 3);
    expect(on.telegram.sent.map((sent) => sent.threadId)).toEqual([5, 6, null]);
    expect(JSON.stringify(on.model.requests[1]?.body.messages)).not.toContain('in five');
    expect(system(2)).toContain(`The current chat_id is telegram_${GROUP.id} `);
  });

  it('tells the owner once, over a restart too, that the model takes no tools', async () => {
    on = await stage({ config: { access: { direct: 'open', owners: [`telegram_${ANNA.id}`] } } });
    on.model.reply((body) =>
      body.tools === undefined
        ? 'fine'
        : {
            status: 400,
            body: { error: { message: 'registry.ollama.ai/library/m does not support tools' } },
          },
    );
    const gateway = await on.start();
    on.telegram.say({ text: 'hi' });
    const texts = await on.replies(ANNA.id, 2);
    expect(texts).toContainEqual('fine');
    expect(texts).toContainEqual(expect.stringMatching(/refuses tools, so personas .* memory/));
    await gateway.stop();
    await on.start();
    on.telegram.say({ text: 'hi again' });
    expect((await on.replies(ANNA.id, 3))[2]).toBe('fine');
  });

  it('lets only owners and administrators change things; whoever asked may stop', async () => {
    on = await stage();
    on.telegram.administrators.set(GROUP.id, [ANNA.id]);
    on.model.reply({ stall: 'headers' as const });
    await on.start();
    const name = on.telegram.bot.username;
    on.telegram.say({ chat: GROUP, from: BEN, text: '/reset' });
    expect((await on.replies(GROUP.id, 1))[0]).toBe(
      'Only owners and administrators of this group can do that.',
    );
    on.telegram.say({ chat: GROUP, from: ANNA, text: `/reset@${name}` });
    expect((await on.replies(GROUP.id, 2))[1]).toMatch(/^Conversation cleared/);
    on.telegram.say({ chat: GROUP, anonymous: true, text: '/persona new Luna' });
    expect((await on.replies(GROUP.id, 3))[2]).toMatch(/^Created persona Luna/);
    on.telegram.say({ chat: GROUP, from: BEN, text: `@${name} hello` });
    await on.model.received(1);
    on.telegram.say({ chat: GROUP, from: { id: 100003, first_name: 'Eve' }, text: '/stop' });
    expect((await on.replies(GROUP.id, 4))[3]).toMatch(/^Only the person who asked/);
    on.telegram.say({ chat: GROUP, from: BEN, text: '/stop' });
    expect((await on.replies(GROUP.id, 5))[4]).toBe('Stopped.');
  });

  it('keeps folder, persona and access when a group becomes a supergroup', async () => {
    on = await stage({ config: { access: { groups: 'listed', chats: ['telegram_-555'] } } });
    await on.start();
    const name = `@${on.telegram.bot.username}`;
    const small = { ...GROUP, id: -555, type: 'group' as const };
    on.telegram.say({ chat: small, text: `${name} remember me` });
    await on.replies(-555, 1);
    on.telegram.migrate(-555, -100555);
    on.telegram.say({ chat: { ...GROUP, id: -100555 }, text: `${name} still there?` });
    await on.replies(-100555, 1);
    expect(system()).toContain('The current chat_id is telegram_-555 ');
    expect(JSON.stringify(on.model.requests.at(-1)?.body.messages)).toContain('remember me');
    expect(await on.home.read('groups/telegram_-555/chat.yaml')).toContain('telegram_-100555');
    expect(await on.home.read('groups/telegram_-100555/chat.yaml')).toBeNull();
  });
});

describe('access on Telegram', () => {
  it('pairs an unknown person, who is made the owner and is told; nothing before is replayed', async () => {
    on = await stage({ config: { access: { direct: 'pairing' } } });
    const gateway = await on.start();
    on.telegram.say({ text: 'hello stranger' });
    const [offer] = await on.replies(ANNA.id, 1);
    const code = /[A-HJ-NP-Z]{8}/.exec(offer ?? '')?.[0] ?? '';
    expect(code).toHaveLength(8);
    await gateway.saw(`coterie pair approve ${code}`);
    on.telegram.say({ text: 'hello?' });
    const list = run(on.home, ['pair', 'list']);
    expect(await list.exited).toBe(0);
    expect(list.out()).toContain(code);
    expect(list.out()).toMatch(/^There is no owner yet/);
    expect(await run(on.home, ['pair', 'approve', code]).exited).toBe(0);
    expect((await on.replies(ANNA.id, 2))[1]).toMatch(/^You are in\. /);
    const approved = run(on.home, ['pair', 'approve', `telegram_${ANNA.id}`, '--owner']);
    expect(await approved.exited).toBe(0);
    expect((await on.replies(ANNA.id, 3))[2]).toMatch(/owner/);
    on.telegram.say({ text: 'now?' });
    expect((await on.replies(ANNA.id, 4))[3]).toBe('echo: now?');
    expect(JSON.stringify(on.model.requests[0]?.body)).not.toContain('hello stranger');
    const removed = run(on.home, ['pair', 'remove', `telegram_${ANNA.id}`]);
    expect(await removed.exited).toBe(0);
  });

  it('keeps nothing of an unlisted group, names it once, and lets it in when approved', async () => {
    on = await stage({ config: { access: { groups: 'listed' } } });
    const gateway = await on.start();
    const name = `@${on.telegram.bot.username}`;
    on.telegram.say({ chat: GROUP, text: `${name} SECRET-ONE` });
    await gateway.saw(`coterie pair approve telegram_${GROUP.id}`);
    on.telegram.say({ chat: GROUP, text: `${name} SECRET-TWO` });
    on.telegram.say({ text: 'marker' });
    await on.replies(ANNA.id, 1);
    expect(gateway.err().split(`coterie pair approve telegram_${GROUP.id}`)).toHaveLength(2);
    expect(await run(on.home, ['pair', 'approve', `telegram_${GROUP.id}`]).exited).toBe(0);
    on.telegram.say({ chat: GROUP, text: `${name} hello` });
    await on.replies(GROUP.id, 1);
    expect(JSON.stringify(on.model.requests.map(({ body }) => body))).not.toContain('SECRET');
  });
});

describe('what goes wrong', () => {
  it('tells the chat one plain sentence when the model fails, and goes on with the next message', async () => {
    on = await stage();
    on.model.reply((_body, n) =>
      n === 0 ? { status: 400, body: { error: { message: 'no such thing' } } } : 'well',
    );
    await on.start();
    on.telegram.say({ text: 'one' });
    const [sentence] = await on.replies(ANNA.id, 1);
    expect(sentence).toMatch(/language model refused/);
    on.telegram.say({ text: 'two' });
    expect((await on.replies(ANNA.id, 2))[1]).toBe('well');
  });

  it('gives a model that calls for ever its rounds, one more in which it may not, and then no tools', async () => {
    on = await stage({ config: { model: { max_tool_rounds: 3 } } });
    on.model.reply((body) =>
      body.tools ? { calls: [{ name: 'no_such_tool', arguments: {} }] } : 'enough of that',
    );
    await on.start();
    on.telegram.say({ text: 'go' });
    expect(await on.replies(ANNA.id, 1)).toEqual(['enough of that']);
    // The tools stay in the requests, for the server's prompt cache, as long as that can end it.
    const tools = on.model.requests.map(({ body }) => body.tools?.length ?? 0);
    expect(tools).toEqual([tools[0], tools[0], tools[0], tools[0], 0]);
    expect(JSON.stringify(on.model.requests[1]?.body.messages)).toContain(
      'There is no tool named no_such_tool',
    );
  });

  it('sends again after 429 and 500, plain after 400 for markup, not after 403, and looks first after a cut', async () => {
    on = await stage();
    on.model.reply((body) => `**re** ${/>([^<]*)</.exec(body.messages.at(-1)?.content ?? '')?.[1]}`);
    await on.start();
    on.telegram.fail('sendMessage', { status: 429, parameters: { retry_after: 1 } });
    on.telegram.say({ text: 'a' });
    expect(await on.replies(ANNA.id, 1)).toEqual(['re a']);
    on.telegram.fail('sendMessage', { status: 400, description: "Bad Request: can't parse entities" });
    on.telegram.say({ text: 'b' });
    expect((await on.replies(ANNA.id, 2))[1]).toBe('re b');
    expect(on.telegram.sent[1]?.entities).toEqual([]);
    on.telegram.fail('sendMessage', { status: 403, description: 'Forbidden: bot was blocked by the user' });
    on.telegram.say({ text: 'c' });
    await eventually(() => on.telegram.callsOf('sendMessage').length === 5, 'the blocked one was tried');
    on.telegram.say({ text: 'd' });
    expect((await on.replies(ANNA.id, 3))[2]).toBe('re d');
    on.telegram.fail('sendMessage', { drop: 'after' });
    on.telegram.say({ text: 'e' });
    await on.replies(ANNA.id, 4);
    on.telegram.say({ text: 'f' });
    expect((await on.replies(ANNA.id, 5)).slice(3)).toEqual(['re e', 're f']);
  });

  it('never writes the token into its log', async () => {
    on = await stage();
    const gateway = await on.start();
    on.telegram.fail('sendMessage', { drop: 'after' });
    on.telegram.fail('editMessageReplyMarkup', { drop: 'before' });
    on.telegram.fail('getUpdates', { drop: 'before' });
    on.telegram.say({ text: 'hi' });
    await on.telegram.until(() => on.telegram.callsOf('editMessageReplyMarkup').length > 0);
    await gateway.stop();
    expect(gateway.err()).not.toContain(on.telegram.token);
  });
});

describe('webhook mode', () => {
  it('takes updates with the secret only, and serves health, readiness and metrics', async () => {
    const port = 20_000 + (process.pid % 20_000);
    on = await stage({ config: { board: { port } } });
    await on.home.configure({
      ...{ access: { direct: 'open' }, conversation: { debounce_ms: 0 }, board: { port } },
      model: { base_url: on.model.url, name: 'scripted' },
      channels: {
        telegram: {
          ...{ token: on.telegram.token, api_root: on.telegram.url, mode: 'webhook' },
          ...{ webhook_url: `http://127.0.0.1:${port}/telegram/webhook`, webhook_secret: 'hush-hush' },
        },
      },
    });
    await on.start();
    await eventually(() => on.telegram.webhook(), 'the webhook is set');
    on.telegram.say({ text: 'by webhook' });
    expect(await on.replies(ANNA.id, 1)).toEqual(['echo: by webhook']);
    const base = `http://127.0.0.1:${port}`;
    const forged = await fetch(`${base}/telegram/webhook`, { method: 'POST', body: '{}' });
    expect(forged.status).toBe(401);
    expect((await fetch(`${base}/health`)).status).toBe(200);
    const ready = await fetch(`${base}/ready`);
    expect(ready.status).toBe(200);
    expect(JSON.stringify(await ready.json())).toContain('telegram');
    expect(await (await fetch(`${base}/metrics`)).text()).toMatch(/coterie_messages_received_total/);
  });
});
