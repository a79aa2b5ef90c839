/** The fake's phones follow no change that WhatsApp's do not. */
import { proto } from '@whiskeysockets/baileys';
import { describe, expect, it } from 'vitest';
import { applyChange, MESSAGE_EDIT, REVOKE } from './whatsapp-changes.js';
import type { SentMessage } from './whatsapp-words.js';

const NOW = Date.UTC(2026, 0, 15, 12);
const MINUTE = 60_000;
const KEY = { remoteJid: '4917@s.whatsapp.net', fromMe: true, id: '3EB01' };

function sent(more: Partial<SentMessage> = {}): SentMessage {
  return {
    ...{
      id: '3EB01',
      to: KEY.remoteJid,
      chat: null,
      kind: 'text',
      text: 'one',
      quotedId: null,
      mentioned: [],
    },
    ...{ file: null, voiceSeconds: null, at: NOW - MINUTE, times: 1, retries: 0, acked: true, cut: false },
    ...{ edited: false, revoked: false, content: proto.Message.create({ conversation: 'one' }) },
    ...more,
  };
}

const EDIT = { key: KEY, type: MESSAGE_EDIT, editedMessage: { conversation: 'two' } };
const DELETION = { key: KEY, type: REVOKE };
const how = (edit?: string, isAgain = false) => ({ edit, isAgain, now: NOW });

describe('an edit', () => {
  it('changes the words of a young message of ours', () => {
    const message = sent();
    expect(applyChange(message, EDIT, how('1'))).toBeNull();
    expect(message).toMatchObject({ text: 'two', edited: true });
  });

  it('that was asked for again comes without its announcement', () => {
    expect(applyChange(sent(), EDIT, how(undefined, true))).toBeNull();
  });

  it.each([
    ['of nothing', undefined, EDIT, '1', /not there/],
    ['of an old message', sent({ at: NOW - 16 * MINUTE }), EDIT, '1', /too old/],
    ['of a deleted message', sent({ revoked: true }), EDIT, '1', /deleted/],
    ['of a picture', sent({ kind: 'image' }), EDIT, '1', /not one of words/],
    ['without words', sent(), { ...EDIT, editedMessage: {} }, '1', /not one of words/],
    ["of somebody else's message", sent(), { ...EDIT, key: { ...KEY, fromMe: false } }, '1', /somebody else/],
    ['that is not announced', sent(), EDIT, undefined, /not announced/],
    ['that is announced as a deletion', sent(), EDIT, '7', /not announced/],
  ])('%s is seen by nobody', (_what, message, change, edit, fault) => {
    const before = message && { ...message };
    expect(applyChange(message, change, how(edit))).toMatch(fault);
    expect(message).toEqual(before);
  });
});

describe('a deletion', () => {
  it('takes a message of two days', () => {
    const message = sent({ at: NOW - 47 * 60 * MINUTE });
    expect(applyChange(message, DELETION, how('7'))).toBeNull();
    expect(message.revoked).toBe(true);
  });

  it.each([
    ['of an older message', sent({ at: NOW - 49 * 60 * MINUTE }), '7', /too old/],
    ['that is not announced', sent(), undefined, /not announced/],
  ])('%s is seen by nobody', (_what, message, edit, fault) => {
    expect(applyChange(message, DELETION, how(edit))).toMatch(fault);
    expect(message.revoked).toBe(false);
  });
});
