/** Several personas in one room: who speaks, what each of them hears, and that it ends. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import type { InboundMessage } from '../../src/core/message.js';
import type { ModelRequest } from '../../src/core/model.js';
import { type Workbench, type WorkbenchOptions, workbench } from '../harness/conversation.js';

let on: Workbench;
afterEach(() => on.close());

const GROUP: Partial<InboundMessage> = { chat: { address: '-5', kind: 'group', title: 'Garden' } };
const MIRA = { address: '1', name: 'Mira', administrator: true };

const say = (text: string, more: Partial<InboundMessage> = {}) =>
  on.say(text, { ...GROUP, sender: MIRA, ...more });

/** Mira puts a sign to one of our messages. */
const react = (id: string) =>
  on.receive({
    ...{ kind: 'reaction', chat: { address: '-5', kind: 'group' }, sender: { address: '1', name: 'Mira' } },
    ...{ platformMessageIds: [id], sign: '😂', sentAt: 0 },
  });

/** Who is asked. */
const askedOf = (request: ModelRequest) => /Your name here is (.+?)\. You talk/.exec(systemOf(request))?.[1];
const systemOf = (request: ModelRequest) => String(request.messages[0]?.content);
const shownTo = (request: ModelRequest) =>
  request.messages
    .slice(1)
    .map(({ content }) => content)
    .join('\n');
/** Who spoke, and what, since a point. */
const heard = (from = 0) =>
  on.sent.slice(from).map(({ part, options }) => `${options.appearance?.name ?? '-'}: ${part.text}`);

/** A group with three personas; Nova is the active one, since she was made last. */
async function company(options: WorkbenchOptions = {}, names = ['Luna', 'Max', 'Nova']): Promise<number> {
  on = await workbench(options);
  for (const name of names) await say(`/persona new ${name}`);
  await on.settled();
  for (const name of names) await say(`/persona invite ${name}`);
  await on.settled();
  return on.sent.length;
}

describe('who answers', () => {
  it('is everybody who is called, in turn, and each hears what was just said', async () => {
    const before = await company();
    on.answer((request) => `I am ${askedOf(request)}`);
    await say('Luna and Max, how are you?');
    await on.settled();
    expect(heard(before)).toEqual(['Luna: I am Luna', 'Max: I am Max']);
    const [first, second] = on.asked.slice(-2);
    expect(shownTo(first as ModelRequest)).not.toContain('I am');
    expect(shownTo(second as ModelRequest)).toMatch(
      /Luna and Max, how are you\?[\s\S]*sender="Luna"[^>]*>I am Luna</,
    );
  });

  it.each([
    ['@Max @Luna hello', ['Max', 'Luna']],
    ['@Luna and Max, hello', ['Luna', 'Max']],
    ['@Max tell Luna that I like her', ['Max']],
    ['max, what did you dream of?', ['Max']],
    ['Luna, Max und Nova: guten Morgen', ['Luna', 'Max', 'Nova']],
    ['hello everybody', []],
  ])('by name: %s', async (text, names) => {
    const before = await company();
    on.answer((request) => `I am ${askedOf(request)}`);
    await say(text);
    await on.settled();
    expect(heard(before)).toEqual(names.map((name) => `${name}: I am ${name}`));
  });

  it('is whoever wrote the message that is replied to', async () => {
    const before = await company();
    await say('Luna, hello');
    await on.settled();
    expect(heard(before)).toEqual(['Luna: fine']);
    const replyTo = { senderName: 'bot', text: 'fine', ours: true };
    const found = await on.store.delivery(on.sent.at(-1)?.options.key ?? '');
    expect(found?.personaId).toBe('luna');
    const platformMessageId = on.sentIds.at(-1) ?? '';
    await say('and you?', { replyTo: { ...replyTo, platformMessageId } });
    await on.settled();
    expect(heard(before)).toEqual(['Luna: fine', 'Luna: fine']);
  });

  it('is whoever’s own account is mentioned, or written to', async () => {
    const before = await company();
    await say('hello you', { mentionsBot: true, addresses: ['max'] });
    await on.settled();
    expect(heard(before)).toEqual(['Max: fine']);
  });

  it('is whoever’s own account is written to, also where nobody has met it yet', async () => {
    on = await workbench();
    await on.say('hello you', { addresses: ['luna'] });
    await on.settled();
    expect(on.sent.map(({ options }) => options.speaker)).toEqual(['luna']);
    expect(await readFile(join(on.folder, 'groups/test_1/luna/MEMORY.md'), 'utf8')).toContain('# Memory');
  });

  it('a command that is given to a persona’s own account means that persona', async () => {
    on = await workbench();
    const toLuna = { addresses: ['luna'] };
    await on.say('/start', toLuna);
    await on.settled();
    expect(on.texts().at(-1)).toContain('I am luna');
    await on.say('my cat is Minka', toLuna);
    await on.say('my dog is Rex');
    await on.settled();
    await on.say('/reset', toLuna);
    await on.settled();
    await on.say('what do I have?', toLuna);
    await on.settled();
    expect(shownTo(on.asked.at(-1) as ModelRequest)).not.toContain('Minka');
    await on.say('what do I have?');
    await on.settled();
    expect(shownTo(on.asked.at(-1) as ModelRequest)).toContain('Rex');
    await on.say('/persona', toLuna);
    await on.settled();
    expect(on.texts().at(-1)).toContain('default (active), luna');
  });

  it('is the active one where nobody is called', async () => {
    const before = await company({ rules: { requireMention: false } });
    await say('hello everybody');
    await on.settled();
    expect(heard(before)).toEqual(['Nova: fine']);
  });

  it('is one that an arbiter picks, where that is wished', async () => {
    const before = await company({
      rules: { requireMention: false },
      settings: { natural: true, caps: CAPS },
    });
    on.answer((request) => (isArbiter(request) ? 'Max.' : `I am ${askedOf(request)}`));
    await say('who knows about cars?');
    await on.settled();
    expect(heard(before)).toEqual(['Max: I am Max']);
    const question = on.asked.find(isArbiter);
    expect(question?.maxOutputTokens).toBeLessThanOrEqual(1_000);
    expect(question?.tools).toEqual([]);
  });

  it('is nobody where the arbiter says so, unless the message is for us', async () => {
    const before = await company({
      rules: { requireMention: false },
      settings: { natural: true, caps: CAPS },
    });
    on.answer((request) => (isArbiter(request) ? 'nobody' : 'fine'));
    await say('I go to lunch');
    await on.settled();
    expect(heard(before)).toEqual([]);
    await say('hello', { mentionsBot: true });
    await on.settled();
    expect(heard(before)).toEqual(['Nova: fine']);
  });

  it('is still whoever is called after a message that the arbiter gives to nobody', async () => {
    const before = await company({
      rules: { requireMention: false },
      settings: { natural: true, caps: CAPS },
    });
    let interrupted = false;
    on.answer(async (request) => {
      if (isArbiter(request)) return 'nobody';
      if (!interrupted) {
        interrupted = true;
        await say('a bird just flew by');
        await say('Nova, hello');
      }
      return 'fine';
    });
    await say('Luna, hello');
    await on.settled();
    expect(heard(before)).toEqual(['Luna: fine', 'Nova: fine']);
  });

  it('costs what the arbiter was asked, whether or not somebody answers', async () => {
    await company({ settings: { natural: true }, rules: { requireMention: false } });
    const usage = { inputTokens: 40, outputTokens: 2 };
    on.answer((request) => ({ text: isArbiter(request) ? 'nobody' : 'fine', usage }));
    await say('a bird just flew by');
    await on.settled();
    on.answer((request) => ({ text: isArbiter(request) ? 'Max' : 'fine', usage }));
    await say('what shall we eat?');
    await on.settled();
    const { personas } = await on.store.usage({
      chatId: 'test_-5',
      personId: null,
      since: 0,
      now: Date.UTC(2100, 0),
    });
    expect(personas.toSorted((a, b) => a.personaId.localeCompare(b.personaId))).toEqual([
      { personaId: 'max', turns: 1, usage: { inputTokens: 80, outputTokens: 4 } },
      { personaId: 'nova', turns: 0, usage },
    ]);
  });

  it('is the active one where the arbiter cannot be asked', async () => {
    const before = await company({
      rules: { requireMention: false },
      settings: { natural: true, caps: CAPS },
    });
    on.answer((request) => (isArbiter(request) ? { fault: 'model_unreachable' } : 'fine'));
    await say('hello');
    await on.settled();
    expect(heard(before)).toEqual(['Nova: fine']);
  });
});

describe('the name under which people see the bot', () => {
  it('calls it, and is what default goes by', async () => {
    on = await workbench({ names: ['Wren Bot'] });
    await say('Wren, what is it?', { sender: MIRA });
    await say('I saw a wren today', { sender: MIRA });
    await on.settled();
    expect(on.asked).toHaveLength(1);
    expect(askedOf(on.asked[0] as ModelRequest)).toBe('Wren Bot');
  });

  it('is not that of a persona with one of its own', async () => {
    on = await workbench({ names: ['Wren Bot'] });
    await say('/persona new Luna');
    await say('Wren, what is it?');
    await on.settled();
    expect(askedOf(on.asked[0] as ModelRequest)).toBe('Luna');
  });
});

describe('a quarrel', () => {
  it('ends after three rounds', async () => {
    const before = await company();
    on.answer((request) => (askedOf(request) === 'Luna' ? '@Max no!' : '@Luna yes!'));
    await say('Luna: start');
    await on.settled();
    expect(heard(before)).toEqual(['Luna: @Max no!', 'Max: @Luna yes!', 'Luna: @Max no!']);
  });

  it('ends after eight replies, however many join', async () => {
    const before = await company();
    on.answer(() => '@Luna @Max @Nova, no!');
    await say('Luna, Max, Nova: start');
    await on.settled();
    expect(heard(before)).toHaveLength(8);
  });

  it('is ended by a word of a person, who is answered by whom it is for', async () => {
    const before = await company();
    let interrupted = false;
    on.answer(async (request) => {
      if (askedOf(request) === 'Max' && !interrupted) {
        interrupted = true;
        await say('Nova, what do you say?');
      }
      return askedOf(request) === 'Nova' ? 'enough' : askedOf(request) === 'Luna' ? '@Max no!' : '@Luna yes!';
    });
    await say('Luna: start');
    await on.settled();
    expect(heard(before)).toEqual(['Luna: @Max no!', 'Max: @Luna yes!', 'Nova: enough']);
  });

  it('goes on while people only put signs to it; who spoke hears of them', async () => {
    const before = await company();
    on.answer(async (request) => {
      const first = on.sentIds[before];
      if (askedOf(request) === 'Max' && first !== undefined) await react(first);
      return askedOf(request) === 'Luna' ? '@Max no!' : '@Luna yes!';
    });
    await say('Luna: start');
    await on.settled();
    expect(heard(before)).toEqual(['Luna: @Max no!', 'Max: @Luna yes!', 'Luna: @Max no!']);
    on.answer(() => 'enough');
    await say('Luna, enough');
    await on.settled();
    expect(shownTo(on.asked.at(-1) as ModelRequest)).toMatch(
      /<in_reply_to sender="Luna">@Max no!<\/in_reply_to>\n<user_message sender="Mira"[^>]*>\(reacts with 😂\)</,
    );
  });

  it('is ended by words that only look like a sign', async () => {
    const before = await company();
    on.answer(async (request) => {
      if (askedOf(request) === 'Max') await say('(reacts with a sigh) that is enough');
      return askedOf(request) === 'Luna' ? '@Max no!' : '@Luna yes!';
    });
    await say('Luna: start');
    await on.settled();
    expect(heard(before)).toEqual(['Luna: @Max no!', 'Max: @Luna yes!']);
  });

  it('does not cut off somebody whom a person has called', async () => {
    const before = await company();
    on.answer(async (request) => {
      if (askedOf(request) === 'Luna') await say('I forgot: it is about the garden');
      return `I am ${askedOf(request)}`;
    });
    await say('Luna and Max, what do you think?');
    await on.settled();
    expect(heard(before)).toEqual(['Luna: I am Luna', 'Max: I am Max']);
    expect(shownTo(on.asked.at(-1) as ModelRequest)).toContain('it is about the garden');
  });

  it('is ended by /stop, by whoever began it', async () => {
    const before = await company();
    const stuck = new Promise<string>(() => {});
    on.answer((request) => (askedOf(request) === 'Luna' ? '@Max no!' : stuck));
    const anna = { address: '2', name: 'Anna', administrator: false };
    await say('Luna and Nova: start', { sender: anna });
    await expect.poll(() => heard(before)).toEqual(['Luna: @Max no!']);
    await say('/stop', { sender: anna });
    await on.settled();
    expect(heard(before)).toEqual(['Luna: @Max no!', '-: Stopped.']);
  });

  it('leaves nothing unanswered that people say meanwhile', async () => {
    const before = await company();
    let interrupted = false;
    on.answer(async (request) => {
      if (!interrupted) {
        interrupted = true;
        await say('Max, and what is one and one?');
        await say('Nova, what is two and two?');
      }
      return `I am ${askedOf(request)}`;
    });
    await say('Luna and Max, how are you?');
    await on.settled();
    expect(heard(before)).toEqual(['Luna: I am Luna', 'Max: I am Max', 'Nova: I am Nova']);
  });

  it('with a program ends, too', async () => {
    const before = await company({ rules: { requireMention: false } });
    const robot = { address: '9', name: 'Robot', administrator: false, bot: true as const };
    for (let n = 0; n < 12; n++) {
      await say(`beep ${n}`, { sender: robot });
      await on.settled();
    }
    expect(heard(before)).toHaveLength(8);
    await say('hello');
    await say('beep', { sender: robot });
    await on.settled();
    expect(heard(before).length).toBeGreaterThan(8);
  });
});

describe('what a persona knows of a room', () => {
  it('is what was said while it was there', async () => {
    await company();
    await say('Luna, my cat is called Minka');
    await on.settled();
    await say('/persona leave Max');
    await say('Luna, my dog is called Rex');
    await on.settled();
    await say('/persona invite Max');
    await say('Max, what do you know of my animals?');
    await on.settled();
    const shown = shownTo(on.asked.at(-1) as ModelRequest);
    expect(shown).toContain('Minka');
    expect(shown).not.toContain('Rex');
  });

  it('who left is not addressed', async () => {
    const before = await company();
    await say('/persona leave Max');
    await on.settled();
    await say('@Max hello');
    await on.settled();
    expect(heard(before)).toEqual(['-: Max has left. Its memory is kept; /persona invite brings it back.']);
  });

  it('its memory is its own', async () => {
    await company({ memoryTools: true });
    on.answer((request) => {
      const isLuna = askedOf(request) === 'Luna';
      if (!isLuna || request.messages.at(-1)?.role === 'tool') return 'done';
      return {
        calls: [{ name: 'write_tiered_memory', arguments: { tier: 1, content: 'a secret of Luna' } }],
      };
    });
    await say('Luna and Max, remember what you like');
    await on.settled();
    expect(await readFile(join(on.folder, 'groups/test_-5/luna/MEMORY.md'), 'utf8')).toContain('a secret');
    expect(
      on.asked
        .filter((request) => askedOf(request) === 'Max')
        .map(systemOf)
        .join(),
    ).not.toContain('a secret');
  });

  it('no name stands before the words that it is shown', async () => {
    await company();
    await say('Luna, hello');
    await on.settled();
    await say('Luna, and again');
    await on.settled();
    const own = on.asked.at(-1)?.messages.filter(({ role }) => role === 'assistant');
    expect(own).toEqual([{ role: 'assistant', content: 'fine', calls: [] }]);
  });
});

describe('an end of the process', () => {
  it('between two personas changes nothing: each answers once', async () => {
    const before = await company();
    let asked = 0;
    on.answer((request) => {
      if (askedOf(request) === 'Luna') return 'I am Luna';
      asked++;
      return new Promise(() => {});
    });
    await say('Luna and Max, hello');
    await expect.poll(() => asked).toBe(1);
    await expect.poll(() => heard(before)).toEqual(['Luna: I am Luna']);
    on = await on.die();
    await on.settled();
    expect(heard()).toEqual(['Max: fine']);
  });
});

describe('a persona that is deleted', () => {
  it('while it speaks says nothing more, and the others go on', async () => {
    const before = await company();
    let begun = false;
    on.answer((request) => {
      if (askedOf(request) !== 'Luna') return `I am ${askedOf(request)}`;
      begun = true;
      return new Promise(() => {});
    });
    await say('Luna, hello');
    await expect.poll(() => begun).toBe(true);
    await say('/persona delete Luna');
    await on.settled();
    await say('Luna and Max, hello');
    await on.settled();
    expect(heard(before)).toEqual(['-: Deleted persona Luna. Its memory file is kept.', 'Max: I am Max']);
  });
});

const CAPS = { rounds: 3, replies: 8 };
const isArbiter = (request: ModelRequest) => systemOf(request).startsWith('You decide who answers');
