/** By which words in a group somebody calls the bot: its name alone, as people see it, is a word like any other. */
import { describe, expect, it } from 'vitest';
import { callsBot } from '../../src/conversation/rooms/names.js';

const call = (text: string, name = 'Nova') => callsBot(text, [name]);

describe('the bot’s name in a text', () => {
  it.each([
    ['Nova, what time is it?'],
    ['nova: what time is it?'],
    ['@Nova what time is it?'],
    ['what does @nova think of it'],
    ['Nova! Are you there?'],
    ['Nova?'],
    ['Nova'],
    ['  NOVA 🙂'],
    ['hey Nova what time is it'],
    ['Hey, Nova, what time is it'],
    ['hello there Nova'],
    ['Good morning Nova!'],
    ['That was fun. Hi Nova, join us'],
    ['first line\nNova, second line'],
    ['What do you think, Nova?'],
    ['thank you, Nova.'],
    ['guten Morgen Nova'],
    ['**Nova**, look'],
    ['“Nova, look at that”'],
  ])('calls it: %s', (text) => {
    expect(call(text)).toBe(true);
  });

  it.each([
    ['that nova was bright'],
    ['I asked Nova about it yesterday'],
    ['Nova said so'],
    ['Nova Scotia is cold'],
    ['write to me@nova.example'],
    ['novation, anyone?'],
    ['they, say nova is gone'],
    ['Anna, Nova and Ben were there'],
    ['Casanova, come here'],
    ['they nova'],
    [''],
  ])('does not: %s', (text) => {
    expect(call(text)).toBe(false);
  });

  it.each([
    ['my assistant is on holiday'],
    ['Is there an assistant, or somebody else?'],
    ['The assistant, whose name I forget, was kind'],
    ['Assistant managers get paid more'],
    ['ask the assistant!'],
    ['assistant or not, I will go'],
  ])('that is a common word: %s', (text) => {
    expect(call(text, 'Assistant')).toBe(false);
    expect(call('hey assistant, what now?', 'Assistant')).toBe(true);
  });

  it.each([
    ['诺娃', '诺娃，你好'],
    ['诺娃', '你好诺娃'],
    ['诺娃', '嘿，诺娃，今天怎么样'],
    ['诺娃', '你觉得呢，诺娃？'],
    ['诺娃', '@诺娃 今天怎么样'],
    ['ノヴァ', 'ノヴァ、明日の天気は？'],
    ['ノヴァ', 'ノヴァさん、明日の天気は？'],
    ['ノヴァ', 'ねえノヴァ'],
    ['노바', '노바야, 뭐 해?'],
    ['노바', '안녕 노바'],
    ['Нова', 'Нова, который час?'],
    ['Нова', 'эй нова'],
    ['نوفا', 'يا نوفا كم الساعة'],
    ['نوفا', 'نوفا، كم الساعة؟'],
    ['נובה', 'היי נובה'],
    ['नोवा', 'नोवा जी, क्या समय है?'],
    ['Élodie', 'e\u0301lodie, tu viens ?'],
    ['Nova', 'Ｎｏｖａ，早'],
  ])('in every script, %s: %s', (name, text) => {
    expect(call(text, name)).toBe(true);
  });

  it.each([
    ['诺娃', '我昨天问了诺娃这件事'],
    ['诺娃', '诺娃说得对'],
    ['ノヴァ', 'ノヴァは来ますか'],
    ['노바', '노바가 말했어'],
    ['Нова', 'это новая книга, нова ли она'],
  ])('in every script, where it is only spoken of, %s: %s', (name, text) => {
    expect(call(text, name)).toBe(false);
  });

  it.each([
    ['Nova Bot', 'Nova, hello'],
    ['NovaBot', 'nova, hello'],
    ['nova_bot', 'hey nova'],
    ['Nova 🌙', 'Nova, hello'],
    ['Nova (beta)', '@Nova hello'],
    ['Nova AI', 'hi nova'],
    ['C++', 'c++, hello'],
  ])('as it stands over what it says, or as people shorten it: %s', (name, text) => {
    expect(call(text, name)).toBe(true);
  });

  it.each(['Robot', 'Abbot'])('keeps what is a part of it: %s', (name) => {
    expect(callsBot('ro, look. Ab, look', [name])).toBe(false);
    expect(callsBot(`${name}, look`, [name])).toBe(true);
  });

  it('calls nobody where it has none', () => {
    expect(callsBot('hello', [])).toBe(false);
    expect(callsBot('hello, 🙂', ['🙂', ' '])).toBe(false);
  });
});

describe('the bot’s name aloud', () => {
  const aloud = (text: string) => callsBot(text, ['Nova'], 'aloud');

  it.each(['Nova what time is it', '… Nova what time is it', 'Hey Nova.', 'So tell me, Nova?'])(
    'calls it: %s',
    (text) => expect(aloud(text)).toBe(true),
  );

  it('does not where it is only spoken of', () => {
    expect(aloud('I saw a nova yesterday')).toBe(false);
  });
});

it('stays quick with 300 kB of anything', () => {
  const began = performance.now();
  for (const piece of ['nova ', 'hey nova', '. , ! ', '   ', '@', 'n', 'さん']) {
    callsBot(piece.repeat(300_000 / piece.length), ['Nova', 'Assistant (x)']);
  }
  expect(performance.now() - began).toBeLessThan(3_000);
});
