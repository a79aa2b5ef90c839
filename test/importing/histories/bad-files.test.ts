/** Files that are no history, broken, hostile or larger than memory. */
import { describe, expect, test } from 'vitest';
import { jsonPieces } from '../../../src/importing/histories/history.js';
import { fileOf, itemsOf, readOf, zipOf } from './support.js';

const CHAT = JSON.stringify({
  name: 'A',
  type: 'personal_chat',
  id: 1,
  messages: [
    { id: 1, type: 'message', date: '2021-03-01T10:00:00', from: 'A', text: 'x \\" } ] \u00e4 😀' },
    { id: 2, type: 'message', date: '2021-03-01T10:00:00', from: 'A', text: 'y' },
  ],
});

async function refusal(name: string, content: string | Buffer): Promise<string> {
  const path = await fileOf(name, content);
  return itemsOf(path).then(
    () => 'it was read',
    (error: Error) => error.message,
  );
}

describe('a file', () => {
  test.each([
    ['that is empty', 'x.json', ''],
    ['of something else', 'x.json', '{"a": 1}'],
    [
      'of Discord',
      'x.json',
      '{"guild": {}, "channel": {"type": "GuildTextChat"}, "messages": [{"id": "1"}]}',
    ],
    ['of bytes', 'x.txt', Buffer.from([0, 255, 1, 254])],
    ['that is a picture in a zip', 'x.zip', zipOf({ 'a.png': 'x' })],
  ])('%s: what is known is said', async (_, name, content) => {
    expect(await refusal(name, content)).toBe(
      `${name} is no chat history that is known here. What I know is ChatGPT’s conversations.json, Claude’s conversations.json, ` +
        'Telegram Desktop’s result.json, SillyTavern’s .jsonl and WhatsApp’s exported chat (.txt or .zip).',
    );
  });

  test('of HTML from Telegram leads to JSON', async () => {
    const html = '<!DOCTYPE html>\n<html><head><title>Exported Data</title></head></html>';
    for (const [name, content] of [
      ['messages.html', html],
      ['export.zip', zipOf({ 'ChatExport/messages.html': html })],
    ] as const) {
      expect(await refusal(name, content)).toMatch(
        /is Telegram’s export as HTML. Export .* “Machine-readable JSON”/,
      );
    }
  });

  test('that does not exist, or is a folder', async () => {
    await expect(itemsOf('/nowhere/x.json')).rejects.toThrow('x.json cannot be read.');
    await expect(itemsOf('/')).rejects.toThrow('is no file');
  });
});

describe('JSON', () => {
  test('cut off anywhere is refused', async () => {
    // Before the sign of its messages it is not recognised at all.
    for (let length = CHAT.indexOf('[') + 1; length < CHAT.length; length += 7) {
      expect(await refusal('result.json', CHAT.slice(0, length))).toMatch(
        /ends in the middle|cannot be read at byte/,
      );
    }
    const lines = '{"user_name":"A","character_name":"B","chat_metadata":{}}\n{"name":"A","mes":"x"';
    expect(await refusal('x.jsonl', lines)).toMatch(/cannot be read in line 2/);
  });

  test.each([
    ['without a comma', CHAT.replace('},{', '}{')],
    ['with something behind', `${CHAT}x`],
    ['with a bare word', CHAT.replace('"y"', 'y')],
    ['with the wrong bracket', CHAT.replace(/\]\}$/, '}}')],
  ])('%s is refused', async (_, text) => {
    expect(await refusal('result.json', text)).toMatch(/is not JSON: it cannot be read at byte \d+/);
  });

  test('is the same in pieces of any size', async () => {
    const wanted = (path: string) =>
      path === '$' || path === '$.messages'
        ? 'open'
        : path === '$.messages.*' || path === '$.name'
          ? 'whole'
          : 'skip';
    const whole: unknown[] = [];
    const bytes = Buffer.from(`\ufeff ${CHAT} \n`);
    for (const size of [bytes.length, 64, 7, 3, 1]) {
      const found: unknown[] = [];
      const pieces = async function* () {
        for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
      };
      for await (const piece of jsonPieces('x', pieces(), wanted)) found.push(piece);
      if (whole.length === 0) whole.push(...found);
      expect(found).toEqual(whole);
    }
    expect(whole).toHaveLength(5);
  });

  test('with a value above 16 MB loses that alone', async () => {
    const long = JSON.stringify({
      id: 3,
      type: 'message',
      date: '2021-03-01T10:00:00',
      text: 'x'.repeat(17_000_000),
    });
    const { messages, left } = await readOf('result.json', CHAT.replace('},{', `},${long},{`));
    expect(messages.map(({ text }) => text.slice(0, 1))).toEqual(['x', 'y']);
    expect(left).toEqual(['entries of more than 16 MB']);
  });
});

describe('a zip', () => {
  const LINE = '13/1/23, 12:00 - Anna: x';

  test('with names that lead out is read, and nothing is written', async () => {
    const { messages } = await readOf(
      'x.zip',
      zipOf({ '../../../../tmp/coterie-evil.txt': LINE, '/etc/x.json': '{}' }),
    );
    expect(messages).toHaveLength(1);
  });

  test('that is encrypted says so', async () => {
    const zip = zipOf({ '_chat.txt': LINE });
    // The flag stands in the local header and in the directory.
    zip.writeUInt16LE(zip.readUInt16LE(6) | 1, 6);
    const record = zip.indexOf(Buffer.from([0x50, 0x4b, 1, 2]));
    zip.writeUInt16LE(zip.readUInt16LE(record + 8) | 1, record + 8);
    expect(await refusal('x.zip', zip)).toBe(
      '_chat.txt in x.zip is encrypted. Unpack it, and import the file in it.',
    );
  });

  test('that is cut off or changed is refused', async () => {
    const zip = zipOf({ '_chat.txt': `${LINE}\n`.repeat(1000) });
    expect(await refusal('x.zip', zip.subarray(0, zip.length - 30))).toMatch(/damaged or cut off/);
    const changed = Buffer.from(zip);
    const record = changed.indexOf(Buffer.from([0x50, 0x4b, 1, 2]));
    changed.writeUInt32LE(12345, record + 16);
    expect(await refusal('x.zip', changed)).toMatch(/_chat.txt in x.zip is a damaged or cut off zip/);
  });

  test('that unpacks to far more than it says is stopped on the way', async () => {
    const bomb = zipOf({
      '_chat.txt': Buffer.concat([Buffer.from(`${LINE}\n`), Buffer.alloc(150_000_000, 'a')]),
    });
    expect(bomb.length).toBeLessThan(400_000);
    expect(await refusal('x.zip', bomb)).toMatch(/unpacks to far more than any text does/);
  });
});
