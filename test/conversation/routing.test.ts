import { describe, expect, it } from 'vitest';
import { type RoutingRules, route } from '../../src/conversation/rooms/routing.js';
import { NO_PARTS, type Persona } from '../../src/core/persona.js';
import type { StoredMessage } from '../../src/core/transcript.js';

const persona = (id: string, name = id, aliases: string[] = []): Persona => ({
  ...{
    id,
    name,
    aliases,
    tools: null,
    model: null,
    temperature: null,
    avatar: null,
    from: null,
    character: '',
    greeting: null,
    voice: null,
    ...{
      parts: NO_PARTS,
      card: null,
      trusted: false,
      guard: null,
      greetings: [],
      groupGreetings: [],
      talkativeness: null,
      portrait: null,
    },
  },
});

let lastId = 0;
const said = (text: string, more: Partial<StoredMessage> = {}): StoredMessage => ({
  id: ++lastId,
  room: 'telegram_-1',
  author: { kind: 'person', id: 'telegram_7', name: 'Mira', administrator: false },
  text,
  sentAt: 0,
  receivedAt: 0,
  platformMessageId: String(lastId),
  mentionsBot: false,
  replyTo: null,
  edited: false,
  turnId: null,
  ...more,
});

const personas = [persona('default'), persona('luna', 'Luna', ['moon']), persona('小月')];
const group: RoutingRules = { kind: 'group', requireMention: true, activePersona: 'default' };
const direct: RoutingRules = { kind: 'direct', requireMention: true, activePersona: 'default' };

const addressed = (text: string, rules = group, more: Partial<StoredMessage> = {}) =>
  route([said(text, more)], personas, rules).turn?.personaId ?? null;

describe('whom a message addresses', () => {
  it('answers everything in a direct chat, with the active persona', () => {
    expect(addressed('hello', direct)).toBe('default');
    expect(addressed('hello', { ...direct, activePersona: 'luna' })).toBe('luna');
  });

  it('only listens in a group until it is called', () => {
    expect(addressed('hello all')).toBeNull();
    expect(addressed('hello', group, { mentionsBot: true })).toBe('default');
    expect(addressed('hello', { ...group, requireMention: false })).toBe('default');
  });

  it.each([
    ['@luna good morning', 'luna'],
    ['luna: good morning', 'luna'],
    ['LUNA：早', 'luna'],
    ['@moon are you there', 'luna'],
    ['good morning @Luna!', 'luna'],
    ['@小月你好', '小月'],
    ['小月: 你好', '小月'],
    ['lunatic: no', null],
    ['mail me at me@lunar.example', null],
    ['luna said so', null],
  ])('by name: %s', (text, expected) => {
    expect(addressed(text)).toBe(expected);
  });

  it('counts the active persona’s name anywhere as a mention, but not the word default', () => {
    const luna = { ...group, activePersona: 'luna' };
    expect(addressed('what do you think, Luna?', luna)).toBe('luna');
    expect(addressed('lunatics', luna)).toBeNull();
    expect(addressed('by default it is off')).toBeNull();
  });

  it('lets a reply address the persona that wrote the message, unless a name says otherwise', () => {
    const replyTo = { senderName: 'bot', text: 'hm', ours: true, personaId: 'luna' };
    expect(addressed('why?', group, { replyTo })).toBe('luna');
    expect(addressed('@小月 why?', group, { replyTo })).toBe('小月');
    expect(addressed('why?', group, { replyTo: { ...replyTo, personaId: 'gone' } })).toBe('default');
    expect(addressed('why?', group, { replyTo: { ...replyTo, ours: false, personaId: null } })).toBeNull();
  });
});

describe('the name under which people see the bot', () => {
  const asNova = { ...group, botNames: ['Nova'] };
  const spoken = (read: string, more: object = {}) => ({
    attachments: [
      {
        ...{ kind: 'voice' as const, source: 'v', name: null, mimeType: null, bytes: 1, seconds: 3 },
        outcome: { kind: 'kept' as const, file: 'f', mimeType: 'audio/ogg', read },
        ...more,
      },
    ],
    words: '',
  });

  it.each([
    ['Nova, good morning', 'default'],
    ['hey nova what now', 'default'],
    ['what do you think, Nova?', 'default'],
    ['@nova good morning', 'default'],
    ['Luna: what does Nova think?', 'luna'],
    ['the nova was bright', null],
    ['Nova is late', null],
  ])('calls the active persona: %s', (text, expected) => {
    expect(addressed(text, asNova)).toBe(expected);
  });

  it('counts as a mention for whoever is active', () => {
    expect(addressed('Nova, good morning', { ...asNova, activePersona: 'luna' })).toBe('luna');
    expect(addressed('Nova, good morning', group)).toBeNull();
  });

  it('means default where that goes by it, and one of the others where it does not', () => {
    const company = { ...asNova, activePersona: 'luna', invited: ['default', '小月'] };
    expect(addressed('Nova, good morning', company)).toBe('default');
    const named = [persona('default', 'Ada'), persona('luna', 'Luna'), persona('小月')];
    const { turn } = route([said('Nova, good morning')], named, company);
    expect(turn).toMatchObject({ personaId: 'luna', open: 'sure' });
  });

  it('is who is meant, also where others are talked about', () => {
    const company = { ...asNova, activePersona: 'luna', invited: ['default'] };
    expect(addressed('Nova, what do you think of what Luna said?', company)).toBe('default');
    expect(addressed('Nova, ask her. And you, Luna?', company)).toBe('luna');
  });

  it('is a persona’s where one has it for its own', () => {
    const there = [persona('default'), persona('nova', 'Nova')];
    const rules = { ...asNova, botNames: ['Nova Bot'], invited: ['nova'] };
    expect(route([said('hey nova what now')], there, rules).turn?.personaId).toBe('nova');
    expect(route([said('I love nova')], there, rules).turn?.personaId).toBe('nova');
  });

  it('counts aloud as well, at the beginning of a voice note', () => {
    expect(addressed('[voice]', asNova, spoken('Nova what time is it'))).toBe('default');
    expect(addressed('[voice]', asNova, spoken('I saw a nova yesterday'))).toBeNull();
    expect(addressed('[voice]', asNova, spoken('Nova, hello', { ofReply: true }))).toBeNull();
  });

  it('is nothing in the name of a file or what is quoted of one', () => {
    expect(addressed('[document Nova, hello.pdf]', asNova, { words: '', attachments: [] })).toBeNull();
    expect(addressed('[document @luna.pdf]', asNova, { words: '', attachments: [] })).toBeNull();
  });
});

describe('aliases of default', () => {
  const nova = [persona('default', 'default', ['Nova']), persona('luna', 'Luna')];
  const to = (text: string, rules: RoutingRules) => route([said(text)], nova, rules).turn?.personaId ?? null;

  it.each(['Nova, hello', 'hello @nova', 'what do you think, Nova?', 'nova: hello'])(
    'count as a mention: %s',
    (text) => {
      expect(to(text, group)).toBe('default');
      expect(to(text, { ...group, invited: ['luna'] })).toBe('default');
    },
  );
});

describe('an album', () => {
  const item = (text: string, more: Partial<StoredMessage> = {}) =>
    said(`${text}[image]`, { album: 'a', words: text, attachments: [], ...more });
  const texts = (messages: StoredMessage[] = []) => messages.map(({ text }) => text);

  it('is for whom its caption is for, before it and behind it, and as a whole', () => {
    const waiting = [said('hm'), item(''), said('aside'), item('luna: look'), item('')];
    const { turn, noted } = route(waiting, personas, group);
    expect(turn?.personaId).toBe('luna');
    expect(texts(turn?.batch)).toEqual(['[image]', 'luna: look[image]', '[image]']);
    expect(texts(noted)).toEqual(['hm', 'aside']);
    const inDirect = route([item(''), item('@luna look')], personas, direct);
    expect(inDirect.turn).toMatchObject({ personaId: 'luna', batch: [{}, {}] });
  });

  it('ends where another one begins, or that of somebody else', () => {
    const ben = { author: { kind: 'person' as const, id: 'telegram_8', name: 'Ben', administrator: false } };
    const waiting = [item('luna: look'), item('', { album: 'b' }), item('', ben)];
    const { turn, noted } = route(waiting, personas, group);
    expect(turn?.batch).toHaveLength(1);
    expect(noted).toHaveLength(2);
  });

  it('is not answered again for what comes late, unless words come with it', () => {
    expect(route([item('', { late: true })], personas, direct)).toMatchObject({ turn: null, noted: [{}] });
    expect(route([item('which?', { late: true })], personas, direct).turn?.batch).toHaveLength(1);
  });
});

describe('a forward', () => {
  const forward = (text: string, rules: RoutingRules, more: Partial<StoredMessage> = {}) =>
    addressed(text, rules, { forwardedFrom: 'Bob', ...more });

  it('calls nobody by its words', () => {
    const asNova = { ...group, botNames: ['Nova'] };
    for (const text of ['luna: hi', '@moon', 'Nova, hi', 'luna']) expect(forward(text, asNova)).toBeNull();
    expect(forward('luna: hi', direct)).toBe('default');
    expect(forward('luna: hi', { ...group, requireMention: false })).toBe('default');
  });

  it('is for whom it replies to, or whose account it was sent to', () => {
    const replyTo = { senderName: 'bot', text: 'hm', ours: true, personaId: 'luna' };
    expect(forward('hi', group, { replyTo })).toBe('luna');
    expect(forward('hi', direct, { addresses: ['luna'] })).toBe('luna');
  });
});

describe('where personas have accounts of their own, the one that is nobody’s calls the active persona', () => {
  const company = { ...group, invited: ['luna'] };
  const main = { mentionsBot: true, addresses: [] };

  it.each([
    ['@coterie_bot what do you think of what Luna said?', 'default'],
    ['what do you think of what Luna said, @coterie_bot?', 'default'],
    ['@coterie_bot hello', 'default'],
    ['@coterie_bot Luna, what do you think?', 'luna'],
    ['@coterie_bot what do you think, Luna?', 'luna'],
    ['@coterie_bot and @Luna, what do you think?', 'luna'],
    ['@coterie_bot luna: what do you think?', 'luna'],
  ])('%s', (text, expected) => {
    expect(addressed(text, company, main)).toBe(expected);
  });

  it('also in an answer to what another persona said; as nobody was named, an arbiter may choose', () => {
    const replyTo = { senderName: 'bot', text: 'hm', ours: true, personaId: 'luna' };
    const { turn } = route([said('@coterie_bot and you?', { ...main, replyTo })], personas, company);
    expect(turn).toMatchObject({ personaId: 'default', also: [], open: 'sure' });
  });

  it('while a persona with that account is called by it, and one account for all means whoever is named', () => {
    const text = '@coterie_bot what do you think of what Luna said?';
    expect(addressed(text, company, { ...main, addresses: ['luna'] })).toBe('luna');
    expect(addressed(text, company, { mentionsBot: true })).toBe('luna');
  });
});

describe('what becomes one turn', () => {
  it('takes messages for one persona and leaves the rest from the first one for another', () => {
    const waiting = [
      said('one'),
      said('@bot two', { mentionsBot: true }),
      said('three'),
      said('@luna four'),
      said('five'),
    ];
    const { turn, noted } = route(waiting, personas, group);
    expect(turn?.batch.map((message) => message.text)).toEqual(['@bot two']);
    expect(noted.map((message) => message.text)).toEqual(['one', 'three']);
  });

  it('notes everything when nobody is called', () => {
    const { turn, noted } = route([said('one'), said('two')], personas, group);
    expect(turn).toBeNull();
    expect(noted).toHaveLength(2);
  });

  it('stays quick with a text of 300 kB', () => {
    const text = 'luna '.repeat(60_000);
    expect(addressed(text, { ...group, activePersona: 'luna' })).toBe('luna');
    expect(addressed('lunaluna'.repeat(40_000), { ...group, activePersona: 'luna' })).toBeNull();
  });
});
