import { describe, expect, it } from 'vitest';
import { COMMAND_NAMES } from '../../src/conversation/commands/list.js';
import { type CommandAddress, parseCommand, words } from '../../src/conversation/commands/parse.js';

const parse = (text: string, more: Partial<CommandAddress> = {}) =>
  parseCommand(text, COMMAND_NAMES, { mentionsBot: false, isDirect: false, names: [], ...more });

describe('recognising commands', () => {
  it.each([
    ['/reset', { name: 'reset', argument: '' }],
    ['  /Reset  ', { name: 'reset', argument: '' }],
    ['/new', { name: 'new', argument: '' }],
    ['/persona new "Old Bear" from sage', { name: 'persona', argument: 'new "Old Bear" from sage' }],
    ['\u200e/stop', { name: 'stop', argument: '' }],
    ['\u200d/\u200cstop\u200d', { name: 'stop', argument: '' }],
    // Joiners belong to names: Persian, Malayalam, emoji.
    ['/persona new می\u200cرود', { name: 'persona', argument: 'new می\u200cرود' }],
    ['/persona new അനില്\u200d', { name: 'persona', argument: 'new അനില്\u200d' }],
    ['/persona new \u200e👩\u200d🚀 Ada', { name: 'persona', argument: 'new 👩\u200d🚀 Ada' }],
    ['／help', { name: 'help', argument: '' }],
    ['/persona\nlist', { name: 'persona', argument: 'list' }],
  ])('%j', (text, expected) => {
    expect(parse(text)).toEqual(expected);
  });

  it.each(['/unknown', '/reset@otherbot', 'say /reset', '/resets', '/', '//reset', '/etc/passwd'])(
    '%j is conversation',
    (text) => {
      expect(parse(text)).toBeNull();
    },
  );
});

it('our own name may stand before a command, and only ours', () => {
  expect(parse('@coterie_bot /reset', { mentionsBot: true })).toEqual({ name: 'reset', argument: '' });
  expect(parse('@somebody /reset')).toBeNull();
});

describe('behind a command', () => {
  const names = ['Old Bear', 'old'];
  it.each([
    ['/persona@Old Bear list', 'list'],
    ['/persona@@old bear', ''],
    ['/persona@OLD\nlist', 'list'],
    ['/persona@Coterie list', 'list'],
  ])('may stand a name of ours: %j', (text, argument) => {
    expect(parse(text, { names })).toEqual({ name: 'persona', argument });
  });

  it('stands in a direct chat nobody else’s', () => {
    expect(parse('/reset@anything', { isDirect: true })).toEqual({ name: 'reset', argument: '' });
  });

  it.each(['/reset@Older', '/reset@', '/resets@old'])('another is conversation: %j', (text) => {
    expect(parse(text, { names })).toBeNull();
  });
});

describe('splitting an argument', () => {
  it.each([
    ['new "Old Bear" from sage', ['new', 'Old Bear', 'from', 'sage']],
    ['new “Old Bear”', ['new', 'Old Bear']],
    ["new 'Old Bear'", ['new', 'Old Bear']],
    ['switch   小月', ['switch', '小月']],
    ['', []],
  ])('%j', (argument, expected) => {
    expect(words(argument)).toEqual(expected);
  });
});
