import { describe, expect, it } from 'vitest';
import { type AdmitRules, admit } from '../../src/conversation/rooms/admit.js';
import type { Persona } from '../../src/core/persona.js';
import type { StoredMessage } from '../../src/core/transcript.js';

const persona = (id: string, name = id, aliases: string[] = []): Persona => ({
  ...{
    id,
    name,
    aliases,
    model: null,
    temperature: null,
    avatar: null,
    from: null,
    character: '',
    greeting: null,
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
const group: AdmitRules = { kind: 'group', requireMention: true, activePersona: 'default' };
const direct: AdmitRules = { kind: 'direct', requireMention: true, activePersona: 'default' };

const addressed = (text: string, rules = group, more: Partial<StoredMessage> = {}) =>
  admit([said(text, more)], personas, rules).turn?.personaId ?? null;

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
    const { turn } = admit([said('@coterie_bot and you?', { ...main, replyTo })], personas, company);
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
    const { turn, noted } = admit(waiting, personas, group);
    expect(turn?.batch.map((message) => message.text)).toEqual(['@bot two']);
    expect(noted.map((message) => message.text)).toEqual(['one', 'three']);
  });

  it('notes everything when nobody is called', () => {
    const { turn, noted } = admit([said('one'), said('two')], personas, group);
    expect(turn).toBeNull();
    expect(noted).toHaveLength(2);
  });

  it('stays quick with a text of 300 kB', () => {
    const text = 'luna '.repeat(60_000);
    expect(addressed(text, { ...group, activePersona: 'luna' })).toBe('luna');
    expect(addressed('lunaluna'.repeat(40_000), { ...group, activePersona: 'luna' })).toBeNull();
  });
});
